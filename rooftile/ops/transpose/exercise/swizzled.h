#pragma once
#include "rooftile/core/plugin.h"
#include "rooftile/ops/transpose/transpose.problem.h"

namespace rooftile::exercise {

/// One matrix of 32-bit elements, row by row.
Status launch_swizzled(const CudaLaunch& launch, const TransposeProblem& problem);

}  // namespace rooftile::exercise
