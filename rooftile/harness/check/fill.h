#pragma once
// What inputs hold.
#include <vector>

#include "rooftile/harness/spec.h"

namespace rooftile::harness {

/// Whether a fill means something for a dtype: infinities only where the format has them, bytes only for
/// integers.
bool fits(Fill fill, DType type);
/// Whether all values are numbers.
bool finite(Fill fill);

/// An operand's values, row by row; not yet rounded to its dtype. The same for the same seed, on every
/// machine.
std::vector<double> fill_values(const Operand& operand, Fill fill, std::uint64_t seed);

const char* name(Fill fill);
const char* name(Layout layout);

}  // namespace rooftile::harness
