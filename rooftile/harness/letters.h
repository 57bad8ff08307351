#pragma once
// The spec of a function whose signature has any letters: products, attention, losses. Operands, dtypes,
// bytes, call, workspace, options and random cases follow from the signature; the op's cases.h adds the
// oracle, flops, tolerance and the shapes to try.
#include "rooftile/harness/spec.h"

namespace rooftile::harness {

/// A case's shape: the outer sizes, then a size for each letter in the order in which letters appear first
/// ("... M K",
/// "... K N", "... M N": {outer…, M, K, N}); what a relation of the signature gives is left out, and so may
/// be the last letters, of optional operands alone. Parameters: options by name; optional operands by name, 0
/// absent or 1 (what `absent` names: 0 unless a case says otherwise); dtypes by letter, from the second one
/// on: which of those that the letter may be, as another one's first; of functions that take lists "tensors",
/// how many each has (1 unless a case says). Item k's first outer size is k larger than the case's, in lists
/// of all lengths.
struct SpecParts {
  const char* function;
  OracleFunctions oracle;
  Tolerance tolerance;
  /// Letters whose indices know nothing of each other, as outer ones do: rows M and columns N of a product.
  const char* independent = "";
  std::vector<std::string> absent = {};
};
Spec spec_of(const SpecParts& parts);

/// How many elements a list of shape "..." has in a case, all its tensors together.
double list_elements(const Case& c);

}  // namespace rooftile::harness
