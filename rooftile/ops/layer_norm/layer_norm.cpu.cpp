#include "rooftile/core/op.h"
#include "rooftile/ops/layer_norm/ladder/ladder.h"
#include "rooftile/ops/layer_norm/layer_norm.problem.h"
#include "rooftile/ops/layer_norm/layer_norm_backward.tile.h"
#include "rooftile/ops/layer_norm/layer_norm_blocks.tile.h"
#include "rooftile/tile/rows.h"

namespace rooftile {
namespace {
using namespace tile;

/// From here on a row, the one before and the weights push each other out of the first cache.
constexpr std::int64_t kLongRowBytes = 8 * 1024;

/// Long rows of f32 from memory, by blocks.
template <bool kAdds>
void run_by_blocks(const CpuLaunch& launch, const LayerNormProblem& p,
                   const kernels::LayerNorm<float>& program, std::int64_t bytes) {
  const std::int64_t columns = p.rows.columns;
  for_programs(launch, p.rows.rows, bytes, [&](ThreadScratch scratch, std::int64_t begin, std::int64_t end) {
    const auto row_at = [&](std::int64_t row) ROOFTILE_INLINE { return operands_of<float>(p, row, end); };
    const auto vectors = vector_list<FloatVector, 2>([&](int v) ROOFTILE_INLINE {
      return floats_of(scratch, p.vectors[v], p.vector_dtype, columns, program.absent(v));
    });
    kernels::layer_norm_by_blocks<float, kAdds>(program, CpuTeam<float, Access::streaming>(scratch), begin,
                                                end, row_at, vectors, 1 / static_cast<float>(columns));
    stream_fence();
  });
}

Status launch_tile(const CpuLaunch& launch, const LayerNormProblem& p) {
  using P = LayerNormProblem;
  const std::int64_t row_bytes = p.rows.columns * bits(p.dtype) / 8;
  const int tensors = 2 + (p.data[P::kResidual] ? 1 : 0) + (p.data[P::kSum] ? 1 : 0);
  const std::int64_t bytes = p.rows.rows * row_bytes * tensors;
  // A weight and a bias that are no dense floats are held by scratch, in whole tiles of at most 64.
  bool fits = p.rows.columns <= std::int64_t(kScratchBytes) / 4 / 2 / 64 * 64;
  if (plain_floats(p.vectors[P::kWeight], p.vector_dtype, p.rows.columns) &&
      plain_floats(p.vectors[P::kBias], p.vector_dtype, p.rows.columns))
    fits = true;
  if (p.dtype == DType::f32 && row_bytes > kLongRowBytes && bytes > launch.streaming_bytes &&
      p.rows.dense() && fits) {
    const kernels::LayerNorm<float> program{p.eps()};
    if (p.data[P::kResidual])
      run_by_blocks<true>(launch, p, program, bytes);
    else
      run_by_blocks<false>(launch, p, program, bytes);
    return {};
  }
  return with_real(p.dtype, [&]<class Real>() {
    return for_row_program<Real>(launch, "layer_norm", p, kernels::LayerNorm<Real>{p.eps<Real>()});
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
