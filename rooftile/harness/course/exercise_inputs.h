#pragma once
// What a verdict says of a kernel's inputs.
#include <string>

#include "rooftile/harness/check/problem.h"

namespace rooftile::harness {

/// "; x[5] = 1, y[5] = 2": what an element is computed from, where that is little.
std::string inputs_of(const Problem& problem, std::size_t output, std::int64_t element);

/// The runner's "input x was changed at byte 20" as "x[5] was changed, and x is an input"; nothing for other
/// damage.
std::string changed_input(const Problem& problem, const std::string& damage);

}  // namespace rooftile::harness
