#pragma once
// copy, add, axpby and dot as their equations read, in any scalar.
#include "rooftile/harness/spec.h"

namespace rooftile::harness {

/// y ← x.
struct CopyOracle {
  template <class S>
  static void run(const Case&, Arrays<S>& a) {
    for (std::int64_t i = 0; i < a["y"].size(); ++i) a["y"].store(i, a["x"].load(i));
  }
};

/// z ← x + y.
struct AddOracle {
  template <class S>
  static void run(const Case& c, Arrays<S>& a) {
    // Halves are rounded twice, to f32 and to their own format; wider sums only once.
    const bool twice = bits(c.dtype) == 16;
    for (std::int64_t i = 0; i < a["z"].size(); ++i) {
      const S z = a["x"].load(i) + a["y"].load(i);
      a["z"].store(i, z, twice ? std::fabs(to_double(z)) : 0);
    }
  }
};

/// As the arithmetic has it: for f64 as given, else rounded to f32.
inline double axpby_factor(const Case& c, const char* which, double otherwise) {
  const double given = c.parameter(which, otherwise);
  return c.dtype == DType::f64 ? given : static_cast<float>(given);
}

/// y ← αx + βy; a factor of 0 means that its operand is not read.
struct AxpbyOracle {
  template <class S>
  static void run(const Case& c, Arrays<S>& a) {
    const double alpha = axpby_factor(c, "alpha", 0.7), beta = axpby_factor(c, "beta", -0.3);
    for (std::int64_t i = 0; i < a["y"].size(); ++i) {
      S y(0);
      double terms = 0;
      if (alpha != 0) {
        y = S(alpha) * a["x"].load(i);
        terms += std::fabs(to_double(y));
      }
      if (beta != 0) {
        const S term = S(beta) * a["y"].load(i);
        terms += std::fabs(to_double(term));
        y = alpha != 0 ? y + term : term;
      }
      a["y"].store(i, y, terms);
    }
  }
};

/// result ← Σ x_i·y_i.
struct DotOracle {
  template <class S>
  static void run(const Case&, Arrays<S>& a) {
    S sum(0);
    double terms = 0;
    for (std::int64_t i = 0; i < a["x"].size(); ++i) {
      const S term = a["x"].load(i) * a["y"].load(i);
      sum += term;
      terms += std::fabs(to_double(term));
    }
    a["result"].store(0, sum, terms);
  }
};

}  // namespace rooftile::harness
