#pragma once
// RMS norm as the equations read, in any scalar: the oracle.
#include "rooftile/harness/row_spec.h"

namespace rooftile::harness {

/// weight, or weight + 1; 1 where there is none.
template <class S>
S rms_norm_weight(const Case& c, Arrays<S>& a, std::int64_t i) {
  if (!a.has("weight")) return S(1);
  return c.parameter("unit_offset") == 0 ? a["weight"].load(i) : a["weight"].load(i) + S(1.0);
}

/// h = x + residual, r = 1 / √(Σ h² / N + eps), y = h·r·w.
struct RmsNormOracle {
  template <class S>
  static void run(const Case& c, Arrays<S>& a) {
    const std::int64_t columns = c.shape.back(), rows = rows_of_case(c);
    std::vector<S> h(static_cast<std::size_t>(columns));
    for (std::int64_t row = 0; row < rows; ++row) {
      const std::int64_t at = row * columns;
      S squares(0);
      for (std::int64_t i = 0; i < columns; ++i) {
        S& value = h[static_cast<std::size_t>(i)];
        value = a["x"].load(at + i);
        if (a.has("residual")) value = S(rounded_to(c.dtype, to_double(value + a["residual"].load(at + i))));
        if (a.has("sum")) a["sum"].store(at + i, value, 0);
        squares += value * value;
      }
      const S mean = squares / S(static_cast<double>(columns));
      const S rstd = S(1.0) / sqrt(mean + S(real_of(c, "eps", 1e-6)));
      const double r = to_double(rstd);
      // Half the relative error of Σ h², whose terms are positive.
      // Below the normal numbers r has an absolute error, and so has h·r.
      const double least = least_normal(c), r_size = 2 * std::fmax(r, least);
      if (a.has("rstd")) a["rstd"].store(row, rstd, r_size);
      for (std::int64_t i = 0; i < columns; ++i) {
        const S value = h[static_cast<std::size_t>(i)], w = rms_norm_weight(c, a, i);
        const double size = std::fmax(std::fabs(to_double(value)) * r_size, 2 * least);
        a["y"].store(at + i, value * rstd * w, size * std::fabs(to_double(w)));
      }
    }
  }
};

/// With x̂ = x·r and g = dy·w: dx = r·(g - x̂·Σ g·x̂ / N), dweight = Σ dy·x̂ over all rows.
struct RmsNormBackwardOracle {
  template <class S>
  static void run(const Case& c, Arrays<S>& a) {
    const std::int64_t columns = c.shape.back(), rows = rows_of_case(c);
    const std::size_t width = static_cast<std::size_t>(columns);
    std::vector<S> normal(width), g(width), weights(width, S(0));
    std::vector<double> terms(width);
    for (std::int64_t row = 0; row < rows; ++row) {
      const std::int64_t at = row * columns;
      const S rstd = a["rstd"].load(row);
      S products(0);
      double product_terms = 0;
      for (std::size_t i = 0; i < width; ++i) {
        const std::int64_t k = static_cast<std::int64_t>(i);
        const S dy = a["dy"].load(at + k);
        normal[i] = a["x"].load(at + k) * rstd;
        g[i] = dy * rms_norm_weight(c, a, k);
        const S product = g[i] * normal[i];
        products += product;
        product_terms += std::fabs(to_double(product));
        if (!a.has("dweight")) continue;
        const S term = dy * normal[i];
        weights[i] += term;
        terms[i] += std::fabs(to_double(term));
      }
      const double n = static_cast<double>(columns);
      const S mean = products / S(n);
      for (std::size_t i = 0; i < width; ++i) {
        const double size = std::fabs(to_double(g[i])) + std::fabs(to_double(normal[i])) * product_terms / n;
        a["dx"].store(at + static_cast<std::int64_t>(i), (g[i] - normal[i] * mean) * rstd,
                      std::fabs(to_double(rstd)) * size);
      }
    }
    if (a.has("dweight"))
      for (std::size_t i = 0; i < width; ++i)
        a["dweight"].store(static_cast<std::int64_t>(i), weights[i], terms[i]);
  }
};

}  // namespace rooftile::harness
