#pragma once
#include "rooftile/core/plugin.h"
#include "rooftile/ops/transpose/transpose.problem.h"

namespace rooftile::emulated::test {

/// The swizzle going in but not coming out; by half the rows, so that two share a bank; no barrier.
enum class Mistake { none, one_side, half_the_banks, no_barrier };

template <Mistake kMistake>
Status launch_mistaken(const CudaLaunch& launch, const TransposeProblem& p);

}  // namespace rooftile::emulated::test
