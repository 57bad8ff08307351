#pragma once
#include "rooftile/core/plugin.h"
#include "rooftile/ops/layer_norm/layer_norm.problem.h"

namespace rooftile::ladder {

// f32, dense rows, weight and bias, one thread. From the plainest to the one that lacks only threads and
// prefetching.
void launch_scalar(const CpuLaunch& launch, const LayerNormProblem& problem);
void launch_vectors(const CpuLaunch& launch, const LayerNormProblem& problem);
void launch_accumulators(const CpuLaunch& launch, const LayerNormProblem& problem);
void launch_one_pass(const CpuLaunch& launch, const LayerNormProblem& problem);
void launch_overlap(const CpuLaunch& launch, const LayerNormProblem& problem);

// On a GPU: f32, dense rows, weight and bias. From the plainest to the one that lacks only dtypes, a
// residual, strides, longer and unaligned rows.
/// Elements that a block's registers hold: 1024 threads with 16 each.
inline constexpr std::int64_t kLongestGpuLayerNormRow = 16384;
Status launch_layer_norm_naive(const CudaLaunch& launch, const LayerNormProblem& problem);
Status launch_layer_norm_block(const CudaLaunch& launch, const LayerNormProblem& problem);
Status launch_layer_norm_shuffles(const CudaLaunch& launch, const LayerNormProblem& problem);
Status launch_layer_norm_registers(const CudaLaunch& launch, const LayerNormProblem& problem);
Status launch_layer_norm_words(const CudaLaunch& launch, const LayerNormProblem& problem);
Status launch_layer_norm_teams(const CudaLaunch& launch, const LayerNormProblem& problem);

/// A row of the rungs' problem.
struct PlainRow {
  const float* x;
  float* y;
  float* mean;  // null: not asked for
  float* rstd;
};
inline PlainRow plain_row(const LayerNormProblem& p, std::int64_t row) {
  using P = LayerNormProblem;
  const auto at = [&](int operand) {
    float* data = static_cast<float*>(const_cast<void*>(p.data[operand]));
    return data ? data + p.rows.offset(operand, row) : nullptr;
  };
  return {at(P::kX), at(P::kY), at(P::kMean), at(P::kRstd)};
}

}  // namespace rooftile::ladder
