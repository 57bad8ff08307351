#pragma once
// Softmax as the equation reads it, in any scalar: the oracle, and rung 0 of the ladder.
#include "rooftile/harness/spec.h"

namespace rooftile::harness {

/// The option is a float.
inline double softmax_scale(const Case& c) { return static_cast<float>(c.parameter("scale", 1)); }

/// y_i = exp(s·x_i - m) / Σ_j exp(s·x_j - m), or its logarithm.
struct SoftmaxOracle {
  template <class S>
  static void run(const Case& c, Arrays<S>& a) {
    const std::int64_t columns = c.shape.back(), rows = columns ? a["x"].size() / columns : 0;
    const S scale(softmax_scale(c));
    for (std::int64_t row = 0; row < rows; ++row) {
      const std::int64_t at = row * columns;
      S peak(-HUGE_VAL);
      for (std::int64_t i = 0; i < columns; ++i) peak = max(peak, scale * a["x"].load(at + i));
      S sum(0);
      for (std::int64_t i = 0; i < columns; ++i) sum += exp(scale * a["x"].load(at + i) - peak);
      const S log_sum = c.parameter("log") ? log(sum) : S(0);
      for (std::int64_t i = 0; i < columns; ++i) {
        const S shifted = scale * a["x"].load(at + i) - peak;
        // The exponent's error grows with |s·x - m|: that is where its terms cancel.
        const double distance = 1 + std::fabs(to_double(shifted));
        if (c.parameter("log")) {
          const S y = shifted - log_sum;
          a["y"].store(at + i, y, distance + std::fabs(to_double(log_sum)));
        } else {
          const S y = exp(shifted) / sum;
          a["y"].store(at + i, y, to_double(y) * distance);
        }
      }
    }
  }
};

/// dx_i = s·y_i·(dy_i - Σ_j y_j·dy_j); for log-softmax s·(dy_i - exp(y_i)·Σ_j dy_j).
struct SoftmaxBackwardOracle {
  template <class S>
  static void run(const Case& c, Arrays<S>& a) {
    const std::int64_t columns = c.shape.back(), rows = columns ? a["y"].size() / columns : 0;
    const S scale(softmax_scale(c));
    const bool log_of_it = c.parameter("log") != 0;
    constexpr double kLeast =
        0x1p-126;  // products below the normal numbers have an absolute error, which s scales
    for (std::int64_t row = 0; row < rows; ++row) {
      const std::int64_t at = row * columns;
      S sum(0);
      double terms = 0;
      for (std::int64_t i = 0; i < columns; ++i) {
        const S term = log_of_it ? a["dy"].load(at + i) : a["y"].load(at + i) * a["dy"].load(at + i);
        sum += term;
        terms += std::fabs(to_double(term));
      }
      for (std::int64_t i = 0; i < columns; ++i) {
        const S y = a["y"].load(at + i), dy = a["dy"].load(at + i);
        const double s = std::fabs(to_double(scale));
        if (log_of_it) {
          const S p = exp(y);
          a["dx"].store(at + i, scale * (dy - p * sum),
                        s * (std::fabs(to_double(dy)) + to_double(p) * terms + kLeast));
        } else {
          const double size = std::fabs(to_double(y)) * (std::fabs(to_double(dy)) + terms) + kLeast;
          a["dx"].store(at + i, scale * (y * (dy - sum)), s * size);
        }
      }
    }
  }
};

}  // namespace rooftile::harness
