#pragma once
#include "rooftile/core/plugin.h"
#include "rooftile/ops/image/image.problem.h"

namespace rooftile::ladder {

// Packed pixels, one thread. From the plainest to the one that lacks only threads.
void launch_scalar(const CpuLaunch& launch, const GrayProblem& problem);
void launch_integers(const CpuLaunch& launch, const GrayProblem& problem);
void launch_vectors(const CpuLaunch& launch, const GrayProblem& problem);
void launch_pairs(const CpuLaunch& launch, const GrayProblem& problem);
void launch_streaming(const CpuLaunch& launch, const GrayProblem& problem);

}  // namespace rooftile::ladder
