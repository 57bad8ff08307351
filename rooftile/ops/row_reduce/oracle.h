#pragma once
// Reductions of rows as their definitions read, in any scalar.
#include "rooftile/harness/row_spec.h"
#include "rooftile/ops/row_reduce/row_reduce.h"

namespace rooftile::harness {

inline RowReduction reduction_of(const Case& c) {
  return static_cast<RowReduction>(static_cast<int>(c.parameter("kind")));
}

struct RowReduceOracle {
  template <class S>
  static void run(const Case& c, Arrays<S>& a) {
    const std::int64_t columns = c.shape.back();
    const RowReduction kind = reduction_of(c);
    for (std::int64_t row = 0; row < rows_of_case(c); ++row) {
      const auto x = [&](std::int64_t i) { return a["x"].load(row * columns + i); };
      double terms = 0;
      bool nan = false;
      for (std::int64_t i = 0; i < columns; ++i) {
        terms += std::fabs(to_double(x(i)));
        nan = nan || std::isnan(to_double(x(i)));
      }
      if (kind == RowReduction::sum || kind == RowReduction::mean) {
        S sum(0);
        for (std::int64_t i = 0; i < columns; ++i) sum += x(i);
        const double n = kind == RowReduction::mean ? static_cast<double>(columns) : 1;
        a["y"].store(row, n == 1 ? sum : sum / S(n), terms / n);
        continue;
      }
      if (kind == RowReduction::product) {
        S product(1);
        for (std::int64_t i = 0; i < columns; ++i) product = product * x(i);
        a["y"].store(row, product, std::fabs(to_double(product)));
        continue;
      }
      S most(kind == RowReduction::min ? HUGE_VAL : -HUGE_VAL);
      for (std::int64_t i = 0; i < columns; ++i)
        if (kind == RowReduction::min ? to_double(x(i)) < to_double(most) : to_double(x(i)) > to_double(most))
          most = x(i);
      if (nan) {
        a["y"].store(row, S(std::nan("")));
      } else if (kind != RowReduction::logsumexp || std::isinf(to_double(most))) {
        a["y"].store(row, most);
      } else {
        S sum(0);
        double errors = 0;  // of a difference, and of its exponential
        for (std::int64_t i = 0; i < columns; ++i) {
          const S term = exp(x(i) - most);
          sum += term;
          if (to_double(term) > 0)
            errors += to_double(term) * (2 + std::fabs(to_double(x(i)) - to_double(most)));
        }
        a["y"].store(row, most + log(sum), std::fabs(to_double(most)) + 1 + errors / to_double(sum));
      }
    }
  }
};

struct RowReduceBackwardOracle {
  /// dy times the product of the others, with zeros apart.
  template <class S>
  static void product(const Case& c, Arrays<S>& a) {
    const std::int64_t columns = c.shape.back();
    for (std::int64_t row = 0; row < rows_of_case(c); ++row) {
      S all(1);
      int zeros = 0;
      for (std::int64_t at = row * columns; at < (row + 1) * columns; ++at) {
        const S x = a["x"].load(at);
        const bool zero = to_double(x) == 0;
        zeros += zero;
        all = all * (zero ? S(1) : x);
      }
      (void)a["y"].load(row);
      const S dy = a["dy"].load(row);
      for (std::int64_t at = row * columns; at < (row + 1) * columns; ++at) {
        const S x = a["x"].load(at);
        const bool whole = zeros == 1 && to_double(x) == 0;
        const S dx = (zeros == 0 ? all / x : whole ? all * S(1) : all * S(0)) * dy;
        a["dx"].store(at, dx, std::fabs(to_double(dx)));
      }
    }
  }
  template <class S>
  static void run(const Case& c, Arrays<S>& a) {
    const std::int64_t columns = c.shape.back();
    const RowReduction kind = reduction_of(c);
    if (kind == RowReduction::product) return product(c, a);
    for (std::int64_t at = 0; at < rows_of_case(c) * columns; ++at) {
      const S x = a["x"].load(at), y = a["y"].load(at / columns), dy = a["dy"].load(at / columns);
      S dx = dy;
      double size = std::fabs(to_double(dy));
      if (kind == RowReduction::mean)
        dx = dy / S(static_cast<double>(columns)), size = std::fabs(to_double(dx));
      if (kind == RowReduction::logsumexp) {
        const S slope = to_double(y) == -HUGE_VAL ? S(0) : exp(x - y);
        dx = dy * slope;
        size = std::fabs(to_double(dy)) * std::fmax(to_double(slope), 0x1p-126) *
               (2 + std::fabs(to_double(x)) + std::fabs(to_double(y)));
        if (to_double(y) == -HUGE_VAL) dx = S(0), size = 0;
      }
      a["dx"].store(at, dx, size);
    }
  }
};

struct RowArgOracle {
  template <class S>
  static void run(const Case& c, Arrays<S>& a) {
    const std::int64_t columns = c.shape.back();
    const double sign = c.parameter("least") != 0 ? -1 : 1;
    for (std::int64_t row = 0; row < rows_of_case(c); ++row) {
      const auto x = [&](std::int64_t i) { return sign * to_double(a["x"].load(row * columns + i)); };
      std::int64_t best = 0;
      for (std::int64_t i = 1; i < columns; ++i)
        if (!std::isnan(x(best)) && (std::isnan(x(i)) || x(i) > x(best))) best = i;
      if (columns == 1) (void)x(0);
      a["index"].store(row, S(static_cast<double>(best)));
    }
  }
};

}  // namespace rooftile::harness
