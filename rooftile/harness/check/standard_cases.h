#pragma once
// The hostile cases that every op gets, from what its spec says.
#include <map>
#include <string>
#include <vector>

#include "rooftile/harness/spec.h"

namespace rooftile::harness {

/// Sizes from 0 on, powers of two ± 1, non-square, each layout, each whole-element offset up to 15, each
/// fill, in place.
std::vector<Case> standard_cases(const Spec& spec, DType dtype);

/// Each real option's values, with each choice of the others, meet hostile inputs: what is exact with one
/// value is rounded with another, or overflows. `quick`: one value, the inputs of one huge number a row.
std::vector<Case> option_cases(const Spec& spec, DType dtype, bool quick);

/// The op's own cases of a dtype behind the standard ones and those of its options. `quick`: two of the
/// first, and one for each real option.
std::vector<Case> all_cases(const Spec& spec, DType dtype, bool quick);

/// {rows, columns} as the op's shape.
Shape shape_of(const Spec& spec, std::int64_t rows, std::int64_t columns);

/// Every different set of parameters among the op's own cases of a dtype; {} at least. At most `most`.
std::vector<std::map<std::string, double>> parameter_sets(const Spec& spec, DType dtype, std::size_t most);

/// Every fill, and the one that a dtype has where nothing else is wanted.
inline constexpr Fill kFills[] = {Fill::normal,           Fill::wide,   Fill::positive,  Fill::constant_rows,
                                  Fill::large_offset,     Fill::zeros,  Fill::denormals, Fill::one_infinity,
                                  Fill::minus_infinities, Fill::masked, Fill::one_nan,   Fill::huge,
                                  Fill::huge_rows,        Fill::bytes};
inline Fill usual_fill(DType type) { return is_floating(type) ? Fill::normal : Fill::bytes; }

}  // namespace rooftile::harness
