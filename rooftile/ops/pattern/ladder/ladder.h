#pragma once
#include "rooftile/core/plugin.h"
#include "rooftile/ops/pattern/pattern.problem.h"

namespace rooftile {

/// Up to here .7·t in double is within 2^-33 of a turn.
inline constexpr double kMaxRungTime = 1048576;

namespace ladder {

Status launch_pattern_one_pixel(const CudaLaunch& launch, const PatternProblem& problem);
Status launch_pattern_turns(const CudaLaunch& launch, const PatternProblem& problem);

}  // namespace ladder
}  // namespace rooftile
