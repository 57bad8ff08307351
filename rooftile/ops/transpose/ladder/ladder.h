#pragma once
#include "rooftile/core/plugin.h"
#include "rooftile/ops/transpose/transpose.problem.h"

namespace rooftile::ladder {

// One matrix of 32-bit elements, row by row. The CPU's, on one thread:
void launch_scalar(const CpuLaunch& launch, const TransposeProblem& problem);
void launch_blocked(const CpuLaunch& launch, const TransposeProblem& problem);
void launch_vectors(const CpuLaunch& launch, const TransposeProblem& problem);
void launch_streaming(const CpuLaunch& launch, const TransposeProblem& problem);

// The GPU's:
Status launch_naive(const CudaLaunch& launch, const TransposeProblem& problem);
Status launch_coalesced_writes(const CudaLaunch& launch, const TransposeProblem& problem);
Status launch_shared(const CudaLaunch& launch, const TransposeProblem& problem);
Status launch_padded(const CudaLaunch& launch, const TransposeProblem& problem);
Status launch_vectorised(const CudaLaunch& launch, const TransposeProblem& problem);

}  // namespace rooftile::ladder
