#pragma once
#include "rooftile/core/plugin.h"
#include "rooftile/ops/dyt/dyt.problem.h"

namespace rooftile::ladder {

// The backward on a GPU: f32, dense rows, a weight, all gradients asked for. From the plainest to the one
// that lacks only dtypes, strides, and rows that come while others are computed.
Status launch_dyt_backward_naive(const CudaLaunch& launch, const DytBackwardProblem& problem);
Status launch_dyt_backward_blocks(const CudaLaunch& launch, const DytBackwardProblem& problem);
Status launch_dyt_backward_words(const CudaLaunch& launch, const DytBackwardProblem& problem);

}  // namespace rooftile::ladder
