#pragma once
// The functions as their equations read, in any scalar.
#include "rooftile/harness/spec.h"

namespace rooftile::harness {

/// y ← x.
struct CopyOracle {
  template <class S>
  static void run(const Case&, Arrays<S>& a) {
    for (std::int64_t i = 0; i < a["y"].size(); ++i) a["y"].store(i, a["x"].load(i));
  }
};

/// x ↔ y.
struct SwapOracle {
  template <class S>
  static void run(const Case&, Arrays<S>& a) {
    for (std::int64_t i = 0; i < a["x"].size(); ++i) {
      const S x = a["x"].load(i);
      a["x"].store(i, a["y"].load(i));
      a["y"].store(i, x);
    }
  }
};

/// What is rounded twice: halves, to f32 and to their own format; wider results only once.
template <class S>
double rounded_before(const Case& c, const S& value) {
  return bits(c.dtype) == 16 ? std::fabs(to_double(value)) : 0;
}

/// z ← x + y.
struct AddOracle {
  template <class S>
  static void run(const Case& c, Arrays<S>& a) {
    for (std::int64_t i = 0; i < a["z"].size(); ++i) {
      const S z = a["x"].load(i) + a["y"].load(i);
      a["z"].store(i, z, rounded_before(c, z));
    }
  }
};

/// As the arithmetic has it: for f64 as given, else rounded to f32.
inline double factor_of(const Case& c, const char* which, double otherwise) {
  const double given = c.parameter(which, otherwise);
  return c.dtype == DType::f64 ? given : static_cast<float>(given);
}

/// y ← αx.
struct ScalOracle {
  template <class S>
  static void run(const Case& c, Arrays<S>& a) {
    for (std::int64_t i = 0; i < a["y"].size(); ++i) {
      const S y = S(factor_of(c, "alpha", 0.7)) * a["x"].load(i);
      a["y"].store(i, y, rounded_before(c, y));
    }
  }
};

/// y ← αx + βy; a factor of 0 means that its operand is not read.
struct AxpbyOracle {
  template <class S>
  static void run(const Case& c, Arrays<S>& a) {
    const double alpha = factor_of(c, "alpha", 0.7), beta = factor_of(c, "beta", -0.3);
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

/// result ← √Σ x_i². An error of the sum is half as large in the root.
struct Nrm2Oracle {
  template <class S>
  static void run(const Case&, Arrays<S>& a) {
    S sum(0);
    for (std::int64_t i = 0; i < a["x"].size(); ++i) sum += a["x"].load(i) * a["x"].load(i);
    const S norm = sqrt(sum);
    a["result"].store(0, norm, to_double(norm) / 2);
  }
};

/// result ← Σ |x_i|.
struct AsumOracle {
  template <class S>
  static void run(const Case&, Arrays<S>& a) {
    S sum(0);
    for (std::int64_t i = 0; i < a["x"].size(); ++i) sum += max(a["x"].load(i), -a["x"].load(i));
    a["result"].store(0, sum, to_double(sum));
  }
};

}  // namespace rooftile::harness
