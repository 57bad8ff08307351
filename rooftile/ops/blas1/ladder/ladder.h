#pragma once
#include "rooftile/core/plugin.h"
#include "rooftile/ops/blas1/blas1.problem.h"

namespace rooftile::ladder {

// f32, all elements side by side, one thread. From the plainest to the one that lacks only threads.
void launch_add_scalar(const CpuLaunch& launch, const AddProblem& problem);
void launch_add_vectors(const CpuLaunch& launch, const AddProblem& problem);
void launch_add_streaming(const CpuLaunch& launch, const AddProblem& problem);

void launch_dot_scalar(const CpuLaunch& launch, const DotProblem& problem);
void launch_dot_vectors(const CpuLaunch& launch, const DotProblem& problem);
void launch_dot_accumulators(const CpuLaunch& launch, const DotProblem& problem);
void launch_dot_chunks(const CpuLaunch& launch, const DotProblem& problem);
void launch_dot_compensated(const CpuLaunch& launch, const DotProblem& problem);

}  // namespace rooftile::ladder
