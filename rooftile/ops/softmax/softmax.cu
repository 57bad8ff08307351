#include "rooftile/ops/softmax/ladder/ladder.h"
#include "rooftile/ops/softmax/softmax.problem.h"
#include "rooftile/ops/softmax/softmax.tile.h"
#include "rooftile/tile/cuda/launch.h"

namespace rooftile {
namespace {
using namespace tile;

template <class T, bool kLog>
struct Forward {
  static constexpr int kHeldThreads = 1024, kLeastBlocks = 0;
  static constexpr bool kRereads = true, kRare = false;
  SoftmaxProblem p;
  constexpr std::int64_t columns() const { return p.rows.columns; }

  template <class Team>
  ROOFTILE_TILE void operator()(const Team& team, const PartOfRow& part) const {
    const auto offsets = offsets_of(p.rows, part.row);
    const auto x = part_at<const T>(p.rows, 0, p.x, offsets.at[0], part, p.x == p.y);
    const auto y = part_at<T>(p.rows, 1, p.y, offsets.at[1], part);
    if constexpr (Team::kHoldsRows)
      kernels::softmax<T, kLog>(
          team, 0, 1,
          [&](std::int64_t) {
            return kernels::SoftmaxRow<T>{x, y};
          },
          p.scale);
    else
      kernels::softmax_online(team, x, y, p.scale, kLog);
  }
};

template <class T>
struct Backward {
  static constexpr int kHeldThreads = 1024, kLeastBlocks = 0;
  static constexpr bool kRereads = true, kRare = false;
  SoftmaxBackwardProblem p;
  constexpr std::int64_t columns() const { return p.rows.columns; }

  template <class Team>
  ROOFTILE_TILE void operator()(const Team& team, const PartOfRow& part) const {
    const auto offsets = offsets_of(p.rows, part.row);
    const kernels::SoftmaxBackwardRow<T> operands{
        part_at<const T>(p.rows, 0, p.y, offsets.at[0], part, p.y == p.dx),
        part_at<const T>(p.rows, 1, p.dy, offsets.at[1], part, p.dy == p.dx),
        part_at<T>(p.rows, 2, p.dx, offsets.at[2], part)};
    const auto row_at = [&](std::int64_t) { return operands; };
    if (p.log)
      kernels::softmax_backward<T, true>(team, 0, 1, row_at, p.scale);
    else
      kernels::softmax_backward<T, false>(team, 0, 1, row_at, p.scale);
  }
};

Status launch_forward(const CudaLaunch& launch, const SoftmaxProblem& p) {
  return with_type<float, f16, bf16>(p.dtype, [&]<class T>() {
    constexpr int kLanes = 16 / int(sizeof(T)), kChunks = 32 / kLanes;
    const Layout layout =
        std::max(layout_of(p.rows, 0, p.x, sizeof(T)), layout_of(p.rows, 1, p.y, sizeof(T)));
    const auto run = [&](const auto& program) {
      return for_rows<kLanes, kChunks>(launch, "softmax", p.rows.rows, layout, program);
    };
    return p.log ? run(Forward<T, true>{p}) : run(Forward<T, false>{p});
  });
}

Status launch_backward(const CudaLaunch& launch, const SoftmaxBackwardProblem& p) {
  return with_type<float, f16, bf16>(p.dtype, [&]<class T>() {
    constexpr int kLanes = 16 / int(sizeof(T)), kChunks = 16 / kLanes;  // two operands
    const Layout layout =
        std::max({layout_of(p.rows, 0, p.y, sizeof(T)), layout_of(p.rows, 1, p.dy, sizeof(T)),
                  layout_of(p.rows, 2, p.dx, sizeof(T))});
    return for_rows<kLanes, kChunks>(launch, "softmax_backward", p.rows.rows, layout, Backward<T>{p});
  });
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
