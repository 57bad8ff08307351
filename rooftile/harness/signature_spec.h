#pragma once
// The spec of an element-by-element function that has a signature: operands, dtypes, bytes, call and standard
// cases follow from it. The op's cases.h adds the oracle, and the option's values to try.
#include "rooftile/harness/bounded.h"
#include "rooftile/harness/spec.h"

namespace rooftile::harness {

/// `values`: of the function's option, if it has one; the first is that of a case that does not say. The
/// flops are the oracle's. `exact`: no arithmetic, every bit must match. Else the tolerance is a multiple of
/// the oracle's own error bound.
Spec elements_spec(const char* function, const OracleFunctions& oracle, std::vector<double> values = {},
                   const char* gradient_of = nullptr, bool exact = false);

}  // namespace rooftile::harness
