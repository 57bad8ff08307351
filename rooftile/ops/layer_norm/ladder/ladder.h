#pragma once
#include "rooftile/core/plugin.h"
#include "rooftile/ops/layer_norm/layer_norm.problem.h"

namespace rooftile::ladder {

// f32, dense rows, weight and bias, one thread. From the plainest to the one that lacks only threads and
// prefetching.
void launch_scalar(const CpuLaunch& launch, const LayerNormProblem& problem);
void launch_vectors(const CpuLaunch& launch, const LayerNormProblem& problem);
void launch_accumulators(const CpuLaunch& launch, const LayerNormProblem& problem);
void launch_one_reading(const CpuLaunch& launch, const LayerNormProblem& problem);
void launch_overlap(const CpuLaunch& launch, const LayerNormProblem& problem);

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
