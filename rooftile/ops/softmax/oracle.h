#pragma once
// Softmax as the equation reads it, in any scalar: the oracle, and rung 0 of the ladder.
#include "rooftile/harness/row_spec.h"

namespace rooftile::harness {

inline double softmax_scale(const Case& c) { return real_of(c, "scale", 1); }

/// Whether -inf stands for what a mask hides.
inline bool softmax_masks(const Case& c) { return c.parameter("causal") != 0 || c.parameter("masked") != 0; }
/// The keys that row `row` sees, from its first on: with causal the last query sees all.
inline std::int64_t softmax_seen(const Case& c, std::int64_t row) {
  const std::int64_t keys = c.shape.back();
  if (c.parameter("causal") == 0) return keys;
  const std::int64_t queries = c.shape.size() < 2 ? 1 : c.shape[c.shape.size() - 2];
  return std::max<std::int64_t>(row % queries + keys - queries + 1, 0);
}

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
      const std::int64_t at = row * columns, seen = softmax_seen(c, row);
      S row_max(-HUGE_VAL);
      bool any = !softmax_masks(c);
      for (std::int64_t i = 0; i < seen; ++i) {
        const S its = scale * x.load(at + i);
        row_max = max(row_max, its);
        // A product of finite numbers is one, though a double may not hold it.
        any = any || to_double(its) != -HUGE_VAL ||
              std::isfinite(to_double(scale) * 0 * to_double(x.load(at + i)));
      }
      S sum(0);
      for (std::int64_t i = 0; i < seen; ++i) sum += exp(scale * x.load(at + i) - row_max);
      const S log_sum = log_of_it ? log(sum) : S(0);
      for (std::int64_t i = 0; i < columns; ++i) {
        if (i >= seen || !any) {
          y.store(at + i, S(log_of_it ? -HUGE_VAL : 0), 0);
          continue;
        }
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
    // Products below the normal numbers have an absolute error, which s scales.
    const double least = least_normal(c);
    for (std::int64_t row = 0; row < rows; ++row) {
      const std::int64_t at = row * columns;
      const auto masked = [&](std::int64_t i) {
        return softmax_masks(c) && to_double(y_of.load(at + i)) == (log_of_it ? -HUGE_VAL : 0);
      };
      S sum(0);
      double terms = 0;
      for (std::int64_t i = 0; i < columns; ++i) {
        const S its = log_of_it ? dy_of.load(at + i) : y_of.load(at + i) * dy_of.load(at + i);
        const S term = masked(i) ? S(0) : its;
        sum += term;
        terms += std::fabs(to_double(term));
      }
      for (std::int64_t i = 0; i < columns; ++i) {
        const S y = y_of.load(at + i), dy = dy_of.load(at + i);
        const double s = std::fabs(to_double(scale));
        if (log_of_it) {
          const S p = exp(y);
          const S its = scale * (dy - p * sum);
          dx.store(at + i, masked(i) ? S(0) : its,
                   s * (std::fabs(to_double(dy)) + to_double(p) * terms + least));
        } else {
          const double size = std::fabs(to_double(y)) * (std::fabs(to_double(dy)) + terms) + least;
          const S its = scale * (y * (dy - sum));
          dx.store(at + i, masked(i) ? S(0) : its, s * size);
        }
      }
    }
  }
};

}  // namespace rooftile::harness
