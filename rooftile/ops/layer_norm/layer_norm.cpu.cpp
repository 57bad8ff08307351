#include "rooftile/core/op.h"
#include "rooftile/ops/layer_norm/ladder/ladder.h"
#include "rooftile/ops/layer_norm/layer_norm.problem.h"
#include "rooftile/ops/layer_norm/layer_norm_backward.tile.h"
#include "rooftile/ops/layer_norm/layer_norm_blocks.tile.h"
#include "rooftile/tile/rows.h"

namespace rooftile {
namespace {
using namespace tile;

/// Rows up to here fit scratch three times as floats (rounded up to whole tiles of at most 64).
constexpr std::int64_t kLongestHeldRow = std::int64_t(kScratchBytes) / 4 / 3 / 64 * 64;

/// From here on a row, the one before and the weights push each other out of the first cache.
constexpr std::int64_t kLongRowBytes = 8 * 1024;

template <class T, bool kAdds, bool kHeld, Access kAccess>
void run_forward(const CpuLaunch& launch, const LayerNormProblem& p, std::int64_t bytes) {
  using P = LayerNormProblem;
  using Real = RealOf<T>;
  for_programs(launch, p.rows.rows, bytes, [&](ThreadScratch scratch, std::int64_t begin, std::int64_t end) {
    const auto row_at = [&](std::int64_t row) ROOFTILE_INLINE {
      return kernels::LayerNormRow<T>{
          row_or_none<const T>(p, P::kX, row, end), row_or_none<const T>(p, P::kResidual, row, end),
          row_or_none<T>(p, P::kY, row, end),       row_or_none<T>(p, P::kSum, row, end),
          value_or_none<Real>(p, P::kMean, row),    value_or_none<Real>(p, P::kRstd, row)};
    };
    const std::int64_t columns = p.rows.columns;
    const Real each_one = 1 / static_cast<Real>(columns);
    if constexpr (kAccess == Access::strided) {
      const CpuTeam<Real, kAccess> team(scratch, p.dtype);
      kernels::layer_norm<T, kAdds, kHeld>(
          team, begin, end, row_at, as_it_is<T>(p.vectors[P::kWeight], p.vector_dtype, columns, 1),
          as_it_is<T>(p.vectors[P::kBias], p.vector_dtype, columns, 0), p.eps<Real>(), each_one);
    } else {
      const auto weight = floats_of(scratch, p.vectors[P::kWeight], p.vector_dtype, columns, 1);
      const auto bias = floats_of(scratch, p.vectors[P::kBias], p.vector_dtype, columns, 0);
      const CpuTeam<float, kAccess> team(scratch);
      constexpr bool kBlocks = kAccess == Access::streaming && !kHeld;
      if (kBlocks && columns * std::int64_t(sizeof(T)) > kLongRowBytes) {
        if constexpr (kBlocks)
          kernels::layer_norm_by_blocks<T, kAdds>(team, begin, end, row_at, weight, bias, p.eps(), each_one);
      } else {
        kernels::layer_norm<T, kAdds, kHeld>(team, begin, end, row_at, weight, bias, p.eps(), each_one);
      }
    }
    if (kAccess == Access::streaming) stream_fence();
  });
}

Status launch_tile(const CpuLaunch& launch, const LayerNormProblem& p) {
  using P = LayerNormProblem;
  const std::int64_t columns = p.rows.columns;
  const int tensors = 2 + (p.data[P::kResidual] ? 1 : 0) + (p.data[P::kSum] ? 1 : 0);
  const std::int64_t bytes = p.rows.rows * columns * bits(p.dtype) / 8 * tensors;
  const bool plain = plain_floats(p.vectors[P::kWeight], p.vector_dtype, columns) &&
                     plain_floats(p.vectors[P::kBias], p.vector_dtype, columns);
  const bool holds = p.dtype != DType::f32 || p.data[P::kResidual];
  const bool fits = columns <= kLongestHeldRow || (plain && !holds);
  return with_real(p.dtype, [&]<class Real>() {
    with_rows<Real>(
        p.rows.dense() && fits, bytes > launch.streaming_bytes, p.dtype, [&]<Access kAccess, class T>() {
          constexpr bool kFloat = std::is_same_v<T, float>;
          if constexpr (kAccess == Access::strided) {
            run_forward<T, true, false, kAccess>(launch, p, bytes);
          } else if (kFloat && !p.data[P::kResidual]) {
            run_forward<float, false, false, kAccess>(launch, p, bytes);
          } else {
            run_forward<T, true, !(kFloat && kAccess == Access::streaming), kAccess>(launch, p, bytes);
          }
        });
    return Status();
  });
}

Status launch_backward(const CpuLaunch& launch, const LayerNormBackwardProblem& p) {
  return with_real(p.dtype, [&]<class Real>() {
    return for_row_program<Real>(launch, "layer_norm_backward", p, kernels::LayerNormBackward<Real>{});
  });
}

}  // namespace

ROOFTILE_CPU_KERNELS(layer_norm) = {
    entry<launch_tile>("layer_norm", "tile"),
    entry<ladder::launch_overlap>("layer_norm", "05_overlap"),
    entry<ladder::launch_one_pass>("layer_norm", "04_one_pass"),
    entry<ladder::launch_accumulators>("layer_norm", "03_accumulators"),
    entry<ladder::launch_vectors>("layer_norm", "02_vectors"),
    entry<ladder::launch_scalar>("layer_norm", "01_scalar"),
    entry<launch_backward>("layer_norm_backward", "tile"),
    {},
};

}  // namespace rooftile
