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
    const Array<S>& x = a["x"];
    Array<S>& y = a["y"];
    const std::int64_t columns = c.shape.back(), rows = columns ? x.size() / columns : 0;
    const S scale(softmax_scale(c));
    const bool log_of_it = c.parameter("log") != 0;
    for (std::int64_t row = 0; row < rows; ++row) {
      const std::int64_t at = row * columns;
      S row_max(-HUGE_VAL);
      for (std::int64_t i = 0; i < columns; ++i) row_max = max(row_max, scale * x.load(at + i));
      S sum(0);
      for (std::int64_t i = 0; i < columns; ++i) sum += exp(scale * x.load(at + i) - row_max);
      const S log_sum = log_of_it ? log(sum) : S(0);
      for (std::int64_t i = 0; i < columns; ++i) {
        const S shifted = scale * x.load(at + i) - row_max;
        // The exponent's error grows with |s·x - m|: that is where its terms cancel.
        const double distance = 1 + std::fabs(to_double(shifted));
        if (log_of_it) {
          y.store(at + i, shifted - log_sum, distance + std::fabs(to_double(log_sum)));
        } else {
          const S share = exp(shifted) / sum;
          y.store(at + i, share, to_double(share) * distance);
        }
      }
    }
  }
};

/// dx_i = s·y_i·(dy_i - Σ_j y_j·dy_j); for log-softmax s·(dy_i - exp(y_i)·Σ_j dy_j).
struct SoftmaxBackwardOracle {
  template <class S>
  static void run(const Case& c, Arrays<S>& a) {
    const Array<S>&y_of = a["y"], &dy_of = a["dy"];
    Array<S>& dx = a["dx"];
    const std::int64_t columns = c.shape.back(), rows = columns ? y_of.size() / columns : 0;
    const S scale(softmax_scale(c));
    const bool log_of_it = c.parameter("log") != 0;
    constexpr double kMin =
        0x1p-126;  // products below the normal numbers have an absolute error, which s scales
    for (std::int64_t row = 0; row < rows; ++row) {
      const std::int64_t at = row * columns;
      S sum(0);
      double terms = 0;
      for (std::int64_t i = 0; i < columns; ++i) {
        const S term = log_of_it ? dy_of.load(at + i) : y_of.load(at + i) * dy_of.load(at + i);
        sum += term;
        terms += std::fabs(to_double(term));
      }
      for (std::int64_t i = 0; i < columns; ++i) {
        const S y = y_of.load(at + i), dy = dy_of.load(at + i);
        const double s = std::fabs(to_double(scale));
        if (log_of_it) {
          const S p = exp(y);
          dx.store(at + i, scale * (dy - p * sum),
                   s * (std::fabs(to_double(dy)) + to_double(p) * terms + kMin));
        } else {
          const double size = std::fabs(to_double(y)) * (std::fabs(to_double(dy)) + terms) + kMin;
          dx.store(at + i, scale * (y * (dy - sum)), s * size);
        }
      }
    }
  }
};

}  // namespace rooftile::harness
