#pragma once
// What the op is, in any scalar. store()'s third argument is how large the terms of an output are: its
// tolerance is a few of their roundings.
#include "rooftile/harness/row_spec.h"

namespace rooftile::harness {

/// y = (x - Σ x / N) · weight.
struct SkeletonOracle {
  template <class S>
  static void run(const Case& c, Arrays<S>& a) {
    const std::int64_t columns = c.shape.back(), rows = rows_of_case(c);
    const double n = static_cast<double>(columns);
    for (std::int64_t row = 0; row < rows; ++row) {
      const std::int64_t at = row * columns;
      S sum(0);
      double terms = 0;
      for (std::int64_t i = 0; i < columns; ++i) {
        sum += a["x"].load(at + i);
        terms += std::fabs(to_double(a["x"].load(at + i)));
      }
      const S mean = sum / S(n);
      if (a.has("mean")) a["mean"].store(row, mean, terms / n);
      for (std::int64_t i = 0; i < columns; ++i) {
        const S x = a["x"].load(at + i), w = a.has("weight") ? a["weight"].load(i) : S(1);
        a["y"].store(at + i, (x - mean) * w, (std::fabs(to_double(x)) + terms / n) * std::fabs(to_double(w)));
      }
    }
  }
};

/// With g = dy · weight: dx = g - Σ g / N, dweight = Σ dy·(x - mean) over rows.
struct SkeletonBackwardOracle {
  template <class S>
  static void run(const Case& c, Arrays<S>& a) {
    const std::int64_t columns = c.shape.back(), rows = rows_of_case(c);
    const double n = static_cast<double>(columns);
    std::vector<S> weights(static_cast<std::size_t>(columns), S(0));
    std::vector<double> sizes(static_cast<std::size_t>(columns));
    const auto gradient = [&](std::int64_t at, std::int64_t i) {
      const S dy = a["dy"].load(at + i);
      return a.has("weight") ? dy * a["weight"].load(i) : dy;
    };
    for (std::int64_t row = 0; row < rows; ++row) {
      const std::int64_t at = row * columns;
      S sum(0);
      double terms = 0;
      for (std::int64_t i = 0; i < columns; ++i) {
        sum += gradient(at, i);
        terms += std::fabs(to_double(gradient(at, i)));
      }
      for (std::int64_t i = 0; i < columns; ++i) {
        const S g = gradient(at, i);
        a["dx"].store(at + i, g - sum / S(n), std::fabs(to_double(g)) + terms / n);
        const S term = a["dy"].load(at + i) * (a["x"].load(at + i) - a["mean"].load(row));
        weights[static_cast<std::size_t>(i)] += term;
        sizes[static_cast<std::size_t>(i)] += std::fabs(to_double(term));
      }
    }
    if (a.has("dweight"))
      for (std::size_t i = 0; i < weights.size(); ++i)
        a["dweight"].store(static_cast<std::int64_t>(i), weights[i], sizes[i]);
  }
};

}  // namespace rooftile::harness
