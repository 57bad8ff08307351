#include "rooftile/ops/softmax/ladder/ladder.h"
#include "rooftile/ops/softmax/softmax.problem.h"
#include "rooftile/ops/softmax/softmax.tile.h"
#include "rooftile/tile/cuda/launch.h"

namespace rooftile {
namespace {
using namespace tile;

template <class T, bool kLog>
struct Forward {
  static constexpr int kLeastBlocks = 0;
  SoftmaxProblem p;

  template <class Team>
  ROOFTILE_TILE void operator()(const Team& team, std::int64_t row, bool there) const {
    const auto x = input_row<T>(p.rows, 0, p.x, row, there, p.x == p.y);
    const auto y = output_row<T>(p.rows, 1, p.y, row, there);
    if constexpr (Team::kHoldsRows)
      kernels::softmax<T, kLog>(
          team, row, row + 1,
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
  static constexpr int kLeastBlocks = 0;
  SoftmaxBackwardProblem p;

  template <class Team>
  ROOFTILE_TILE void operator()(const Team& team, std::int64_t row, bool there) const {
    const kernels::SoftmaxBackwardRow<T> operands{input_row<T>(p.rows, 0, p.y, row, there, p.y == p.dx),
                                                  input_row<T>(p.rows, 1, p.dy, row, there, p.dy == p.dx),
                                                  output_row<T>(p.rows, 2, p.dx, row, there)};
    const auto row_at = [&](std::int64_t) { return operands; };
    if (p.log)
      kernels::softmax_backward<T, true>(team, row, row + 1, row_at, p.scale);
    else
      kernels::softmax_backward<T, false>(team, row, row + 1, row_at, p.scale);
  }
};

Status launch_forward(const CudaLaunch& launch, const SoftmaxProblem& p) {
  return with_type<float, f16, bf16>(p.dtype, [&]<class T>() {
    constexpr int kLanes = 16 / int(sizeof(T)), kChunks = 32 / kLanes;
    const bool aligned = aligned_rows(p.rows, 0, p.x, sizeof(T)) && aligned_rows(p.rows, 1, p.y, sizeof(T));
    const auto run = [&](const auto& program) {
      return for_rows<kLanes, kChunks, true>(launch, "softmax", p.rows.rows, p.rows.columns, aligned,
                                             program);
    };
    return p.log ? run(Forward<T, true>{p}) : run(Forward<T, false>{p});
  });
}

Status launch_backward(const CudaLaunch& launch, const SoftmaxBackwardProblem& p) {
  return with_type<float, f16, bf16>(p.dtype, [&]<class T>() {
    constexpr int kLanes = 16 / int(sizeof(T)), kChunks = 16 / kLanes;  // two operands
    const bool aligned = aligned_rows(p.rows, 0, p.y, sizeof(T)) &&
                         aligned_rows(p.rows, 1, p.dy, sizeof(T)) && aligned_rows(p.rows, 2, p.dx, sizeof(T));
    return for_rows<kLanes, kChunks, true>(launch, "softmax_backward", p.rows.rows, p.rows.columns, aligned,
                                           Backward<T>{p});
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
