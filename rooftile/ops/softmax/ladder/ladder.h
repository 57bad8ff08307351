#pragma once
#include "rooftile/core/plugin.h"
#include "rooftile/ops/softmax/softmax.problem.h"

namespace rooftile::ladder {

// f32, dense rows, one thread. From the plainest to the one that lacks only threads.
void launch_scalar(const CpuLaunch& launch, const SoftmaxProblem& problem);
void launch_vectors(const CpuLaunch& launch, const SoftmaxProblem& problem);
void launch_fast_exp(const CpuLaunch& launch, const SoftmaxProblem& problem);
void launch_accumulators(const CpuLaunch& launch, const SoftmaxProblem& problem);
void launch_streaming(const CpuLaunch& launch, const SoftmaxProblem& problem);

}  // namespace rooftile::ladder
