#pragma once
// Whether an output is right: the tolerance of spec.h, element by element, and its root mean square.
#include <cmath>
#include <string_view>

#include "rooftile/harness/check/problem.h"

namespace rooftile::harness {

/// Below it numbers have fewer bits.
double smallest_normal(DType type);

/// The tolerance of a case, but for what differs between its elements.
struct Limits {
  bool exact = false;
  double per_magnitude = 0;    ///< c·√K·u(accumulator)
  double least_magnitude = 0;  ///< below the accumulator's normal numbers, its rounding no longer shrinks
  double overflow = HUGE_VAL;  ///< terms of this size overflow the accumulator: infinities and NaN are right
  double per_factor = 0;       ///< the rounding of factors on their way
};
/// `alike`: terms that are all alike may round the same way at every step; errors grow as their number, not
/// as its root.
Limits limits_of(const Spec& spec, const Case& c, std::string_view variant, bool alike = false);

/// The second gate: the root mean square of error / tolerance. Rounding the output alone gives 0.41 where
/// magnitudes are spread evenly, up to 0.58 where all lie at the bottom of a binade, and more where the same
/// bits are lost everywhere (0.5 · x: half of all results lie between two numbers); so many percent above
/// what rounding the right answer gives is biased.
inline constexpr double kMaxRms = 0.5, kMaxOfRounding = 1.15;
inline constexpr std::size_t kUlpBins = 24;  ///< off by 0, ≤ 1, ≤ 2, ≤ 4, … ulp; the last: more

struct Comparison {
  std::string failure;      ///< "y[3, 17]: expected 0.5, got 0.25, tolerance 1e-07"; empty: right
  std::int64_t wrong = -1;  ///< the element that `failure` names
  double worst = 0;         ///< largest error as a share of its tolerance
  double squares = 0;       ///< Σ of squared shares over `count` elements of normal size
  std::int64_t count = 0;
  bool gated = false;  ///< whether the root mean square had enough different elements to be judged
  std::int64_t ulps[kUlpBins] = {};
};
Comparison compare(const Limits& limits, const Operand& output, const Answer& answer, const Bytes& got);

/// The first element whose bits differ, or -1. One NaN is as good as another: which operand's sign and
/// payload a NaN inherits is the compiler's choice (IEEE 754-2019, 6.2.3).
std::int64_t first_difference(DType type, const std::byte* a, const std::byte* b, std::size_t bytes);

/// A value in a message. A NaN is "nan" whatever its sign, which no answer is judged by.
std::string value_text(double value);
/// "y[3, 17]".
std::string element_name(const Operand& operand, std::int64_t index);

}  // namespace rooftile::harness
