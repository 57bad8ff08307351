#pragma once
// The hostile cases that every op gets, from what its spec says.
#include <random>
#include <vector>

#include "rooftile/harness/spec.h"

namespace rooftile::harness {

/// Sizes from 0 on, powers of two ± 1, non-square, each layout, each whole-element offset up to 15, each
/// fill, in place.
std::vector<Case> standard_cases(const Spec& spec, DType dtype);

/// The op's own cases of a dtype behind the standard ones. `quick`: two.
std::vector<Case> all_cases(const Spec& spec, DType dtype, bool quick);

/// {rows, columns} as the op's shape.
Shape shape_of(const Spec& spec, std::int64_t rows, std::int64_t columns);

/// Every different set of parameters among the op's own cases of a dtype; {} at least. At most `most`.
std::vector<std::map<std::string, double>> parameter_sets(const Spec& spec, DType dtype, std::size_t most);

/// Any shape up to some 10,000 elements, any fill, one of those parameter sets.
Case random_case(const Spec& spec, DType dtype, const std::vector<std::map<std::string, double>>& sets,
                 std::mt19937_64& random);

}  // namespace rooftile::harness
