#pragma once
// Layer norm as the equations read, in any scalar: the oracle, and rung 0 of the ladder.
#include "rooftile/harness/row_spec.h"

namespace rooftile::harness {

/// h = x + residual, μ = Σ h / N, r = 1 / √(Σ (h - μ)² / N + eps), y = (h - μ)·r·w + b.
struct LayerNormOracle {
  template <class S>
  static void run(const Case& c, Arrays<S>& a) {
    const std::int64_t columns = c.shape.back(), rows = rows_of_case(c);
    const double n = static_cast<double>(columns);
    const Array<S>&x = a["x"], *residual = a.find("residual"), *weight = a.find("weight"),
          *bias = a.find("bias");
    Array<S>&y_of = a["y"], *sum_of = a.find("sum");
    std::vector<S> h(static_cast<std::size_t>(columns)), centred(h);
    for (std::int64_t row = 0; row < rows; ++row) {
      const std::int64_t at = row * columns;
      S total(0);
      double terms = 0;
      for (std::int64_t i = 0; i < columns; ++i) {
        S& value = h[static_cast<std::size_t>(i)];
        value = x.load(at + i);
        if (residual) {
          value = S(rounded_to(c.dtype, to_double(value + residual->load(at + i))));
          if (sum_of) sum_of->store(at + i, value, 0);
        }
        total += value;
        terms += std::fabs(to_double(value));
      }
      const S mean = total / S(n);
      S squares(0);
      double distances = 0;
      for (std::int64_t i = 0; i < columns; ++i) {
        const S d = h[static_cast<std::size_t>(i)] - mean;
        centred[static_cast<std::size_t>(i)] = d;
        squares += d * d;
        distances += std::fabs(to_double(d));
      }
      // The mean's error reaches every element. Kernels that hold it in two floats, all but the rungs (f32
      // without a residual), lose what the sum of differences from its neighbourhood loses, and the second
      // float's rounding.
      const bool rung = c.dtype == DType::f32 && !residual;
      const double rest = c.dtype == DType::f64 ? 0x1p-51 : 0x1p-22;
      const double off = (rung ? terms : distances + terms * rest) / n;
      const S rstd = S(1.0) / sqrt(squares / S(n) + S(real_of(c, "eps", 1e-5)));
      const double r = to_double(rstd);
      // Half the relative error of the variance, whose terms are squares: each of two factors was rounded.
      if (a.has("mean")) a["mean"].store(row, mean, terms / n);
      // Below the normal numbers r has an absolute error. (Kernels do not take y from it there.)
      if (a.has("rstd")) a["rstd"].store(row, rstd, 2 * std::fmax(r, least_normal(c)));
      for (std::int64_t i = 0; i < columns; ++i) {
        const S d = centred[static_cast<std::size_t>(i)];
        S y = d * rstd;
        // r's error multiplies the difference, which below the normal numbers has an absolute error.
        double magnitude = r * (3 * std::fmax(std::fabs(to_double(d)), least_normal(c)) + off);
        if (weight) {
          const S w = weight->load(i);
          y = y * w;
          magnitude *= std::fabs(to_double(w));
        }
        if (bias) {
          const S b = bias->load(i);
          y = y + b;
          magnitude += std::fabs(to_double(b));
        }
        y_of.store(at + i, y, magnitude);
      }
    }
  }
};

/// With x̂ = (x - μ)·r and g = dy·w: dx = r·(g - Σ g / N - x̂·Σ g·x̂ / N), dweight = Σ dy·x̂, dbias = Σ dy over
/// all rows.
struct LayerNormBackwardOracle {
  template <class S>
  static void run(const Case& c, Arrays<S>& a) {
    const std::int64_t columns = c.shape.back(), rows = rows_of_case(c);
    const double n = static_cast<double>(columns);
    const std::size_t width = static_cast<std::size_t>(columns);
    const Array<S>&x = a["x"], &dy_of = a["dy"], *weight = a.find("weight");
    Array<S>&dx = a["dx"], *dweight = a.find("dweight"), *dbias = a.find("dbias");
    std::vector<S> normal(width), g(width), weights(width, S(0)), biases(width, S(0));
    std::vector<double> weight_terms(width), bias_terms(width);
    for (std::int64_t row = 0; row < rows; ++row) {
      const std::int64_t at = row * columns;
      const S mean = a["mean"].load(row), rstd = a["rstd"].load(row);
      S sum(0), products(0);
      double sum_terms = 0, product_terms = 0;
      for (std::size_t i = 0; i < width; ++i) {
        const std::int64_t k = static_cast<std::int64_t>(i);
        const S dy = dy_of.load(at + k);
        normal[i] = (x.load(at + k) - mean) * rstd;
        g[i] = weight ? dy * weight->load(k) : dy;
        const S product = g[i] * normal[i];
        sum += g[i];
        products += product;
        sum_terms += std::fabs(to_double(g[i]));
        product_terms += std::fabs(to_double(product));
        if (dweight) {
          const S term = dy * normal[i];
          weights[i] += term;
          weight_terms[i] += std::fabs(to_double(term));
        }
        if (dbias) {
          biases[i] += dy;
          bias_terms[i] += std::fabs(to_double(dy));
        }
      }
      const S mean_g = sum / S(n), mean_product = products / S(n);
      for (std::size_t i = 0; i < width; ++i) {
        const double magnitude =
            std::fabs(to_double(g[i])) + sum_terms / n + std::fabs(to_double(normal[i])) * product_terms / n;
        dx.store(at + static_cast<std::int64_t>(i), (g[i] - mean_g - normal[i] * mean_product) * rstd,
                 std::fabs(to_double(rstd)) * magnitude);
      }
    }
    for (std::size_t i = 0; i < width; ++i) {
      if (dweight) dweight->store(static_cast<std::int64_t>(i), weights[i], weight_terms[i]);
      if (dbias) dbias->store(static_cast<std::int64_t>(i), biases[i], bias_terms[i]);
    }
  }
};

}  // namespace rooftile::harness
