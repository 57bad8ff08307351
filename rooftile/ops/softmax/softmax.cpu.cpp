#include "rooftile/core/op.h"
#include "rooftile/ops/softmax/ladder/ladder.h"
#include "rooftile/ops/softmax/softmax.problem.h"
#include "rooftile/ops/softmax/softmax.tile.h"

namespace rooftile {
namespace {
using namespace tile;

void launch_tile(const CpuLaunch& launch, const SoftmaxProblem& p) {
  const SplitScale scale(p.scale);
  for_rows(launch, p.rows, p.dtype,
           [&]<class T>(auto team, std::int64_t begin, std::int64_t end) ROOFTILE_INLINE {
             const auto row_at = [&](std::int64_t row) ROOFTILE_INLINE {
               return kernels::SoftmaxRow<T>{row_of<const T>(p.rows, 0, p.x, row, end),
                                             row_of<T>(p.rows, 1, p.y, row, end)};
             };
             if (p.log) return kernels::softmax<T, true>(team, begin, end, row_at, scale);
             kernels::softmax<T, false>(team, begin, end, row_at, scale);
           });
}

Status launch_online(const CpuLaunch& launch, const SoftmaxProblem& p) {
  return with_real(p.dtype, [&]<class Real>() {
    const SplitScaleOf<Real> scale(p.scale);
    for_each_row<Real>(
        launch, p.rows, p.dtype, [&]<class T>(auto team, std::int64_t row, std::int64_t end) ROOFTILE_INLINE {
          const Row<T> y = row_of<T>(p.rows, 1, p.y, row, end);
          const std::int64_t seen = p.seen(row);
          kernels::softmax_online(team, row_of<const T>(p.rows, 0, p.x, row, end).part(0, seen),
                                  y.part(0, seen), y.part(seen, y.size), scale, p.log, p.masked);
        });
    return Status();
  });
}

Status launch_backward(const CpuLaunch& launch, const SoftmaxBackwardProblem& p) {
  return with_real(p.dtype, [&]<class Real>() {
    const auto run = [&]<bool kLog>(std::bool_constant<kLog> log) {
      return for_row_program<Real>(launch, "softmax_backward", p,
                                   kernels::SoftmaxBackward<Real, decltype(log)>(p, log));
    };
    return p.flag(1) ? run(std::true_type()) : run(std::false_type());
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
