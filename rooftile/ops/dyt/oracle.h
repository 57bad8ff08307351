#pragma once
// Dynamic tanh as the equations read, in any scalar: the oracle.
#include "rooftile/harness/row_spec.h"

namespace rooftile::harness {

/// y = weight · tanh(alpha · x) + bias.
struct DytOracle {
  template <class S>
  static void run(const Case& c, Arrays<S>& a) {
    const std::int64_t columns = c.shape.back(), rows = rows_of_case(c);
    const S alpha = a["alpha"].load(0);
    for (std::int64_t at = 0; at < rows * columns; ++at) {
      S y = tanh(alpha * a["x"].load(at));
      double size = 2 * std::fmax(std::fabs(to_double(y)), 0x1p-126);
      if (a.has("weight")) {
        const S w = a["weight"].load(at % columns);
        y = y * w;
        size *= std::fabs(to_double(w));
      }
      if (a.has("bias")) {
        const S b = a["bias"].load(at % columns);
        y = y + b;
        size += std::fabs(to_double(b));
      }
      a["y"].store(at, y, size);
    }
  }
};

/// With v = alpha · x and g = dy · weight · tanh'(v), tanh'(v) = 4e/(1 + e)², e = exp(-2|v|): dx = g · alpha;
/// dweight = Σ dy · tanh v and dbias = Σ dy over rows; dalpha = Σ g · x.
struct DytBackwardOracle {
  template <class S>
  static void run(const Case& c, Arrays<S>& a) {
    const std::int64_t columns = c.shape.back(), rows = rows_of_case(c);
    const std::size_t width = static_cast<std::size_t>(columns);
    const S alpha = a["alpha"].load(0);
    std::vector<S> weights(width, S(0)), biases(width, S(0));
    std::vector<double> weight_terms(width), bias_terms(width);
    S alphas(0);
    double alpha_terms = 0;
    for (std::int64_t at = 0; at < rows * columns; ++at) {
      const std::int64_t i = at % columns;
      const std::size_t column = static_cast<std::size_t>(i);
      const S x = a["x"].load(at), dy = a["dy"].load(at), v = alpha * x, y = tanh(v);
      const S e = exp(S(-2.0) * max(v, -v)), slope = S(4.0) * e / ((S(1.0) + e) * (S(1.0) + e));
      const S g = (a.has("weight") ? dy * a["weight"].load(i) : dy) * slope;
      // What e's exponent is rounded by grows with it. Below the normal numbers errors are absolute: e's, of
      // which the slope has four, too.
      const double least = 0x1p-126;
      const double s = std::fmax(to_double(slope) * (3 + 2 * std::fabs(to_double(v))), 4 * least);
      const double w = a.has("weight") ? std::fabs(to_double(a["weight"].load(i))) : 1;
      const double size = std::fmax(std::fmax(std::fabs(to_double(dy)) * w, least) * s, least);
      a["dx"].store(at, g * alpha, size * std::fabs(to_double(alpha)));
      alphas += g * x;
      alpha_terms += std::fmax(size * std::fabs(to_double(x)), least);
      weights[column] += dy * y;
      weight_terms[column] +=
          2 * std::fmax(std::fabs(to_double(dy)) * std::fmax(std::fabs(to_double(y)), least), least);
      biases[column] += dy;
      bias_terms[column] += std::fabs(to_double(dy));
    }
    // The tolerance's chain is dx's. A column's is the rows; dalpha's, a row in 16 lanes and then the rows.
    const double of_rows = std::sqrt(static_cast<double>(rows));
    const double of_all = std::sqrt(static_cast<double>(rows) + std::ceil(static_cast<double>(columns) / 16));
    for (std::size_t i = 0; i < width; ++i) {
      const std::int64_t k = static_cast<std::int64_t>(i);
      if (a.has("dweight")) a["dweight"].store(k, weights[i], weight_terms[i] * of_rows);
      if (a.has("dbias")) a["dbias"].store(k, biases[i], bias_terms[i] * of_rows);
    }
    if (a.has("dalpha")) a["dalpha"].store(0, alphas, alpha_terms * of_all);
  }
};

}  // namespace rooftile::harness
