#pragma once
#include "rooftile/harness/spec.h"

namespace rooftile::harness {

/// y_i = x_i - (1/n)·Σ_j x_j, in any scalar.
struct SkeletonOracle {
  template <class S>
  static void run(const Case& c, Arrays<S>& a) {
    const std::int64_t columns = c.shape.back(), rows = columns ? a["x"].size() / columns : 0;
    for (std::int64_t row = 0; row < rows; ++row) {
      const std::int64_t at = row * columns;
      S sum(0);
      double terms = 0;
      for (std::int64_t i = 0; i < columns; ++i) {
        sum += a["x"].load(at + i);
        terms += std::fabs(to_double(a["x"].load(at + i)));
      }
      const S mean = sum / S(static_cast<double>(columns));
      for (std::int64_t i = 0; i < columns; ++i) {
        const S x = a["x"].load(at + i);
        // The magnitude of an error: the terms that were added on the way to this element.
        a["y"].store(at + i, x - mean, std::fabs(to_double(x)) + terms / static_cast<double>(columns));
      }
    }
  }
};

}  // namespace rooftile::harness
