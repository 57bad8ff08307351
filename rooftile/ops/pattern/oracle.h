#pragma once
// The colours as their equations read: the oracle, and rung 0 of the ladder.
#include <cmath>

#include "rooftile/harness/spec.h"

namespace rooftile::harness {

/// sin(.01·place + tenths/10 · t): the time's part by libm, which reduces any double exactly, and the place's
/// by the sum of two angles. tenths·t/10 as a double and what it lacks: none of the two is rounded away.
inline double pattern_sine(double place, double tenths, double t) {
  const double product = tenths * t, rest = std::fma(tenths, t, -product);  // together exact
  const double tenth = product / 10;
  const double lacks = (std::fma(-tenth, 10, product) + rest) / 10;
  const double small = place / 100 + lacks;
  return std::sin(tenth) * std::cos(small) + std::cos(tenth) * std::sin(small);
}

struct ColorPatternOracle {
  template <class S>
  static void run(const Case& c, Arrays<S>& a) {
    const std::int64_t height = c.shape[0], width = c.shape[1];
    const double t = c.parameter("t");
    const S most(c.dtype == DType::u8 ? 255.0 : 1.0);
    const auto color = [&](std::int64_t at, double place, double tenths) {
      const S value = S(0.5) + S(0.5) * S(pattern_sine(place, tenths, t));
      a["y"].store(at, c.dtype == DType::u8 ? most * value : value, to_double(most));
    };
    for (std::int64_t i = 0; i < height; ++i)
      for (std::int64_t j = 0; j < width; ++j) {
        const std::int64_t at = 4 * (i * width + j);
        color(at, static_cast<double>(j), 10);
        color(at + 1, static_cast<double>(i), 7);
        color(at + 2, static_cast<double>(i + j), 13);
        a["y"].store(at + 3, most, to_double(most));
      }
  }
};

}  // namespace rooftile::harness
