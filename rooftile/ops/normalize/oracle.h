#pragma once
// Rows divided by their norm as the equations read, in any scalar: the oracle.
#include "rooftile/harness/row_spec.h"

namespace rooftile::harness {

inline double normalize_eps(const Case& c) { return real_of(c, "eps", 1e-12); }

/// max(n, eps), and of a NaN a NaN.
template <class S>
S norm_or_eps(const Case& c, S norm) {
  return to_double(norm) < normalize_eps(c) ? S(normalize_eps(c)) : norm;
}

/// y = x / max(n, eps), n = Σ |x| or √(Σ x²).
template <bool kL1>
struct NormalizeOracle {
  template <class S>
  static void run(const Case& c, Arrays<S>& a) {
    const std::int64_t columns = c.shape.back(), rows = rows_of_case(c);
    for (std::int64_t row = 0; row < rows; ++row) {
      const std::int64_t at = row * columns;
      S sum(0);
      for (std::int64_t i = 0; i < columns; ++i) {
        const S x = a["x"].load(at + i);
        sum += kL1 ? max(x, -x) : x * x;
      }
      const S norm = kL1 ? sum : sqrt(sum);
      if (a.has("norm")) a["norm"].store(row, norm, std::fmax(to_double(norm), least_normal(c)));
      for (std::int64_t i = 0; i < columns; ++i) {
        const S y = a["x"].load(at + i) / norm_or_eps(c, norm);
        a["y"].store(at + i, y, 2 * std::fmax(std::fabs(to_double(y)), least_normal(c)));
      }
    }
  }
};

/// With n' = max(n, eps), y = x / n': dx = (dy - s·Σ dy·y) / n', s = sign x or y, 0 where n < eps.
template <bool kL1>
struct NormalizeBackwardOracle {
  template <class S>
  static void run(const Case& c, Arrays<S>& a) {
    const std::int64_t columns = c.shape.back(), rows = rows_of_case(c);
    for (std::int64_t row = 0; row < rows; ++row) {
      const std::int64_t at = row * columns;
      const S norm = a["norm"].load(row), n = norm_or_eps(c, norm);
      const bool clamped = to_double(norm) < normalize_eps(c);
      S inner(0);
      double terms = 0;
      for (std::int64_t i = 0; i < columns; ++i) {
        const S term = a["dy"].load(at + i) * (a["x"].load(at + i) / n);
        inner += term;
        terms += std::fabs(to_double(term));
      }
      if (clamped) inner = S(0);
      for (std::int64_t i = 0; i < columns; ++i) {
        const S x = a["x"].load(at + i), dy = a["dy"].load(at + i), y = x / n;
        const double value = to_double(x);
        const S s = kL1 ? S(value > 0 ? 1.0 : value < 0 ? -1.0 : 0.0) : y;
        const double size = std::fabs(to_double(dy)) +
                            (clamped ? 0 : std::fmax(std::fabs(to_double(s)), least_normal(c)) * terms);
        a["dx"].store(at + i, (dy - s * inner) / n, size / std::fabs(to_double(n)));
      }
    }
  }
};

}  // namespace rooftile::harness
