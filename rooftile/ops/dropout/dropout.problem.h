#pragma once
// What passes from validation (dropout.cpp) to the launches (dropout.kernels.cpp).
#include "rooftile/core/elements.h"
#include "rooftile/core/philox.h"

namespace rooftile {

/// p as kernels compare with it: an element is kept where (its word & words) >= least.
struct DropoutKeep {
  std::uint32_t least, words;
  float scale;

  /// word/2^32 >= p is word >= ⌈p·2^32⌉: both are exact. With 1, which keeps none, the bound has 33 bits.
  static DropoutKeep of(double p) {
    const double scaled = p * 0x1p32;
    const auto whole = static_cast<std::uint64_t>(scaled);
    const std::uint64_t least = whole + (static_cast<double>(whole) < scaled);
    if (least >> 32 != 0) return {1, 0, 0};
    return {static_cast<std::uint32_t>(least), ~std::uint32_t{0}, static_cast<float>(1 / (1 - p))};
  }
};

struct DropoutProblem {
  ElementsProblem<3> elements;  ///< y, x, residual, or y again; in row-major order
  bool adds_residual;
  PhiloxNumbers numbers;
  DropoutKeep keep;
};

}  // namespace rooftile
