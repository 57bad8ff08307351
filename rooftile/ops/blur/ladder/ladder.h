#pragma once
#include "rooftile/core/plugin.h"
#include "rooftile/ops/blur/blur.problem.h"

namespace rooftile::ladder {

/// What the rungs take: planes whose pixels are side by side, borders replicated, windows that fit a block.
inline constexpr std::int64_t kMaxRungRadius = 24;

Status launch_box_naive(const CudaLaunch& launch, const BoxProblem& problem);
Status launch_box_shared(const CudaLaunch& launch, const BoxProblem& problem);
Status launch_box_separable(const CudaLaunch& launch, const BoxProblem& problem);
Status launch_box_columns(const CudaLaunch& launch, const BoxProblem& problem);

}  // namespace rooftile::ladder
