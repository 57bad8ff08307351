#pragma once
// Gray as the equation reads it: the oracle, and rung 0 of the ladder.
#include "rooftile/harness/spec.h"

namespace rooftile::harness {

/// gray = ⌊(a·red + b·green + c·blue + 500) / 1000⌋, with the weights in thousandths.
struct GrayOracle {
  template <class S>
  static void run(const Case& c, Arrays<S>& arrays) {
    const bool luminosity = c.parameter("luminosity") != 0;
    const S red(luminosity ? 210 : 299), green(luminosity ? 720 : 587), blue(luminosity ? 70 : 114);
    for (std::int64_t i = 0; i < arrays["gray"].size(); ++i) {
      const auto& rgb = arrays["rgb"];
      const S sum = red * rgb.load(3 * i) + green * rgb.load(3 * i + 1) + blue * rgb.load(3 * i + 2);
      // Sums are whole numbers below 2^18, so the quotient in double lies on the right side of each whole
      // number.
      arrays["gray"].store(i, S(std::floor(to_double((sum + S(500)) / S(1000)))));
    }
  }
};

}  // namespace rooftile::harness
