#pragma once
// Cases drawn by structure: each pair of a rows' and a columns' class meets, each operand has a layout of its
// own, each option a value of its own.
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "rooftile/harness/check/problem.h"

namespace rooftile::harness {

/// What the random cases of one function met.
struct Coverage {
  std::int64_t cases = 0;
  std::set<std::pair<std::size_t, std::size_t>> pairs;         ///< classes of rows and columns
  std::map<std::string, std::set<std::string>> layouts;        ///< by operand: "reversed", "unmergeable", …
  std::map<std::string, std::set<std::string>> option_values;  ///< by option: "zero", "tiny", …

  void add(const Spec& spec, const Case& c, const std::vector<Operand>& operands,
           const std::vector<Placement>& placements);
  /// "2000 random cases: 66 of 66 pairs of rows and columns; layouts: x 8, y 7 of 8; scale 7 of 7 kinds"
  std::string describe(const Spec& spec) const;
};

/// Case `k` of a seed. Its pair of classes follows from k; the rest is drawn.
Case random_case(const Spec& spec, DType dtype, std::int64_t k, std::mt19937_64& random);

/// For each operand its own: dimensions in any order, reversed, apart so that none merge, of stride 0
/// (inputs), or dense; up to 31 elements off a boundary.
std::vector<Placement> random_placements(const Problem& problem, std::mt19937_64& random);

/// A real option's values, one or two of each kind (exact, rounded, negative, zero, tiny, huge), within its
/// range.
std::vector<double> values_of(const Option& option, DType dtype);

}  // namespace rooftile::harness
