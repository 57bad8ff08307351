#include "rooftile/ops/softmax/ladder/ladder.h"
#include "rooftile/ops/softmax/softmax.problem.h"
#include "rooftile/ops/softmax/softmax.tile.h"

namespace rooftile {
namespace {
using namespace tile;

/// A block for each row, which ends with it: those that come instead keep multiprocessors busier than blocks
/// that take the next row themselves (bf16 8192x4096, H200: 38 µs with a row each, 42 with ten). Blocks of
/// clusters are short, and their threads hold more: bf16 4096x16384 72 µs with two blocks of 128 threads, 73
/// with one of 512; 2048x32768 71 and, with one of 1024, 76.
template <class T, bool kLog>
struct Forward {
  static constexpr int kHeldThreads = 1024;
  static constexpr Clusters kClusters{sizeof(T) == 2 ? 256 : 512, 256, 256, 64 * int(sizeof(T)) / 16};
  static constexpr Streaming kStreaming{};
  static constexpr int kept(Scope) { return 0; }
  static constexpr bool full(Scope) { return false; }
  /// f32 with two threads, four and eight, H200: 524288x64 82 µs with two, 70 with four; 655360x100 157 with
  /// four, 141 with eight; 2097152x32 154 with two, 196 with four. bf16 524288x64: 40 with two, 49 with four.
  static constexpr int least_threads(std::int64_t columns) {
    return sizeof(T) == 2 ? 2 : columns > 64 ? 8 : columns > 32 ? 4 : 2;
  }
  static constexpr int least_blocks(Scope scope) { return scope == Scope::cluster ? 3 : 0; }
  SoftmaxProblem p;
  SplitScale scale;
  SharedLayout shared_layout() const { return touching_layout(p.rows, {{p.x}, {p.y, 0}}); }
  template <class Rows, class Vectors>
  ROOFTILE_TILE void each_staged(const Rows& rows, const Vectors&) const {
    rows(0, static_cast<const T*>(p.x), false);
    rows(1, static_cast<const T*>(p.y), true);
  }

  template <class Team>
  ROOFTILE_TILE void operator()(const Team& team, const RowRange& range) const {
    const auto row_at = [&](std::int64_t i) {
      return kernels::SoftmaxRow<T>{row_of<const T, Team>(p.rows, 0, p.x, range, i, p.x == p.y),
                                    row_of<T, Team>(p.rows, 1, p.y, range, i)};
    };
    if constexpr (Team::kHoldsRows) {
      kernels::softmax<T, kLog>(team, 0, range.count, row_at, scale);
    } else {
      const auto row = row_at(0);
      const std::int64_t seen = p.seen(range.row);
      kernels::softmax_online(team, row.x.part(0, seen), row.y.part(0, seen), row.y.part(seen, row.y.size),
                              scale, kLog, p.masked);
    }
  }
};

Status launch_forward(const CudaLaunch& launch, const SoftmaxProblem& p) {
  return with_type<float, f16, bf16>(p.dtype, [&]<class T>() {
    constexpr int kLanes = 16 / int(sizeof(T)), kChunks = 32 / kLanes;
    const RowAlignment alignment =
        std::max(alignment_of(p.rows, 0, p.x, sizeof(T)), alignment_of(p.rows, 1, p.y, sizeof(T)));
    const auto run = [&]<class Program>(const Program& program) {
      // Rows of one team may see fewer keys than another's, and shuffles take all of a warp: teams are warps
      // at least, and those that read rows again.
      if (p.masked) {
        if (p.rows.rows <= 0) return Status{};
        using Team = CudaTeam<float, kLanes, 0, Access::any>;
        const RowShape its = row_shape(p.rows.columns, kLanes, kChunks, kMaxThreads, kWarp, false, nullptr);
        const bool warps = its.threads <= kWarp;
        return launch_direct<Team>(
            launch, "softmax", program,
            RowShape{warps ? kWarp : its.threads, warps ? kWarpsThreads / kWarp : 1, 1, p.rows.columns},
            p.rows.rows);
      }
      return for_rows<kLanes, kChunks>(launch, "softmax", p.rows.rows, alignment, program);
    };
    const SplitScale scale(p.scale);
    return p.log ? run(Forward<T, true>{p, scale}) : run(Forward<T, false>{p, scale});
  });
}

Status launch_backward(const CudaLaunch& launch, const SoftmaxBackwardProblem& p) {
  return for_row_program(launch, "softmax_backward", p, kernels::SoftmaxBackward<float, bool>(p, p.flag(1)));
}

}  // namespace

ROOFTILE_CUDA_KERNELS(softmax) = {
    entry<launch_forward>("softmax", "tile"),
    entry<launch_forward>("softmax", "online"),
    entry<ladder::launch_softmax_exp2>("softmax", "07_exp2"),
    entry<ladder::launch_softmax_teams>("softmax", "06_teams"),
    entry<ladder::launch_softmax_words>("softmax", "05_words"),
    entry<ladder::launch_softmax_registers>("softmax", "04_registers"),
    entry<ladder::launch_softmax_shuffles>("softmax", "03_shuffles"),
    entry<ladder::launch_softmax_block>("softmax", "02_block"),
    entry<ladder::launch_softmax_naive>("softmax", "01_naive"),
    entry<launch_backward>("softmax_backward", "tile"),
    {},
};

}  // namespace rooftile
