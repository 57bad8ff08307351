#include "rooftile/core/op.h"
#include "rooftile/ops/softmax/ladder/ladder.h"
#include "rooftile/ops/softmax/softmax.problem.h"
#include "rooftile/ops/softmax/softmax.tile.h"
#include "rooftile/tile/cpu/launch.h"

namespace rooftile {
namespace {
using namespace tile;

void launch_tile(const CpuLaunch& launch, const SoftmaxProblem& p) {
  const auto rows = [&](auto kernel) {
    for_rows(launch, p.rows, p.dtype,
             [&]<class T>(auto team, std::int64_t row, std::int64_t end) ROOFTILE_INLINE {
               const auto x = row_of<const T>(p.rows, 0, p.x, row, end);
               kernel(team, x, team.stage(row_of<T>(p.rows, 1, p.y, row, end)), p.scale);
             });
  };
  if (p.log) {
    rows([](auto team, auto x, auto y, float scale)
             ROOFTILE_INLINE { kernels::log_softmax(team, x, y, scale); });
  } else {
    rows([](auto team, auto x, auto y, float scale) ROOFTILE_INLINE { kernels::softmax(team, x, y, scale); });
  }
}

void launch_online(const CpuLaunch& launch, const SoftmaxProblem& p) {
  for_rows(
      launch, p.rows, p.dtype, [&]<class T>(auto team, std::int64_t row, std::int64_t end) ROOFTILE_INLINE {
        const auto x = row_of<const T>(p.rows, 0, p.x, row, end);
        kernels::softmax_online(team, x, team.stage(row_of<T>(p.rows, 1, p.y, row, end)), p.scale, p.log);
      });
}

void launch_backward(const CpuLaunch& launch, const SoftmaxBackwardProblem& p) {
  for_rows(launch, p.rows, p.dtype,
           [&]<class T>(auto team, std::int64_t row, std::int64_t end) ROOFTILE_INLINE {
             const auto y = row_of<const T>(p.rows, 0, p.y, row, end);
             const auto dy = row_of<const T>(p.rows, 1, p.dy, row, end);
             const auto dx = team.stage(row_of<T>(p.rows, 2, p.dx, row, end));
             if (p.log) return kernels::log_softmax_backward(team, y, dy, dx, p.scale);
             kernels::softmax_backward(team, y, dy, dx, p.scale);
           });
}

}  // namespace

ROOFTILE_CPU_KERNELS(softmax) = {
    entry<launch_tile>("softmax", "tile"),
    entry<launch_online>("softmax", "online"),
    entry<ladder::launch_streaming>("softmax", "05_streaming"),
    entry<ladder::launch_accumulators>("softmax", "04_accumulators"),
    entry<ladder::launch_fast_exp>("softmax", "03_fast_exp"),
    entry<ladder::launch_vectors>("softmax", "02_vectors"),
    entry<ladder::launch_scalar>("softmax", "01_scalar"),
    entry<launch_backward>("softmax_backward", "tile"),
    {},
};

}  // namespace rooftile
