#pragma once
// Matrix and vectors as their equations read, in any scalar.
#include "rooftile/harness/spec.h"

namespace rooftile::harness {

/// For all but f64, alpha and beta are what f32 holds.
inline double blas2_factor(const Case& c, const char* name, double otherwise) {
  const double value = c.parameter(name, otherwise);
  return c.dtype == DType::f64 ? value : static_cast<double>(static_cast<float>(value));
}
inline double blas2_alpha(const Case& c) { return blas2_factor(c, "alpha", 1); }
inline double blas2_beta(const Case& c) { return blas2_factor(c, "beta", 0); }

/// Below the smallest normal number a product's rounding is an absolute one.
inline double blas2_least(const Case& c) { return c.dtype == DType::f64 ? 0x1p-1022 : 0x1p-126; }

/// alpha · Σ_k a(k)·x(k) for k below n, and the terms' size.
template <class S, class A, class X>
S blas2_product(const Case& c, std::int64_t n, A a, X x, double& terms) {
  S sum(0);
  terms = 0;
  for (std::int64_t k = 0; k < n; ++k) {
    const S product = a(k) * x(k);
    sum += product;
    terms += std::fmax(std::fabs(to_double(product)), blas2_least(c));
  }
  terms = (terms + blas2_least(c)) * std::fabs(blas2_alpha(c)) + blas2_least(c);
  return S(blas2_alpha(c)) * sum;
}

/// y_i = alpha · Σ_j a_ij·x_j + beta·c_i.
struct GemvOracle {
  template <class S>
  static void run(const Case& c, Arrays<S>& arrays) {
    const std::int64_t m = c.shape[0], n = c.shape[1];
    Array<S>&a = arrays["a"], &x = arrays["x"], &y = arrays["y"];
    const Array<S>* old = arrays.find("c");
    for (std::int64_t i = 0; i < m; ++i) {
      double terms = 0;
      S value = blas2_product<S>(
          c, n, [&](std::int64_t j) { return a.load(i * n + j); }, [&](std::int64_t j) { return x.load(j); },
          terms);
      if (blas2_beta(c) != 0 && old) {
        const S term = S(blas2_beta(c)) * old->load(i);
        value = value + term;
        terms += std::fabs(to_double(term));
      }
      y.store(i, value, terms);
    }
  }
};

/// alpha·x·y, and its size: where it is subnormal, or x·y is, roundings are absolute ones.
template <class S>
S blas2_outer(const Case& c, const S& x, const S& y, double& terms) {
  const S product = S(blas2_alpha(c)) * (x * y);
  terms = std::fabs(to_double(product)) + blas2_least(c) * (1 + std::fabs(blas2_alpha(c)));
  return product;
}

/// a_ij = alpha·x_i·y_j + c_ij.
struct GeruOracle {
  template <class S>
  static void run(const Case& c, Arrays<S>& arrays) {
    const std::int64_t m = c.shape[0], n = c.shape[1];
    Array<S>&x = arrays["x"], &y = arrays["y"], &a = arrays["a"];
    const Array<S>* old = arrays.find("c");
    for (std::int64_t at = 0; at < m * n; ++at) {
      double terms = 0;
      const S product = blas2_outer(c, x.load(at / n), y.load(at % n), terms);
      if (old) terms += std::fabs(to_double(old->load(at)));
      a.store(at, old ? product + old->load(at) : product, terms);
    }
  }
};

/// Which gradients a backward's case has.
template <class S>
Array<S>* blas2_wanted(Arrays<S>& arrays, const char* name) {
  return arrays.has(name) ? &arrays[name] : nullptr;
}

/// da = alpha·dy·xᵀ, dx = alpha·Aᵀ·dy, dc = beta·dy.
struct GemvBackwardOracle {
  template <class S>
  static void run(const Case& c, Arrays<S>& arrays) {
    const std::int64_t m = c.shape[0], n = c.shape[1];
    Array<S>&a = arrays["a"], &x = arrays["x"], &dy = arrays["dy"];
    if (Array<S>* da = blas2_wanted(arrays, "da"))
      for (std::int64_t at = 0; at < m * n; ++at) {
        double terms = 0;
        const S value = blas2_outer(c, dy.load(at / n), x.load(at % n), terms);
        da->store(at, value, terms);
      }
    if (Array<S>* dx = blas2_wanted(arrays, "dx"))
      for (std::int64_t j = 0; j < n; ++j) {
        double terms = 0;
        const S value = blas2_product<S>(
            c, m, [&](std::int64_t i) { return a.load(i * n + j); },
            [&](std::int64_t i) { return dy.load(i); }, terms);
        dx->store(j, value, terms);
      }
    if (Array<S>* dc = blas2_wanted(arrays, "dc"))
      for (std::int64_t i = 0; i < m; ++i) {
        const S value = blas2_beta(c) != 0 ? S(blas2_beta(c)) * dy.load(i) : S(0);
        dc->store(i, value, std::fabs(to_double(value)));
      }
  }
};

/// dx = alpha·dA·y, dy = alpha·dAᵀ·x, dc = dA.
struct GeruBackwardOracle {
  template <class S>
  static void run(const Case& c, Arrays<S>& arrays) {
    const std::int64_t m = c.shape[0], n = c.shape[1];
    Array<S>&x = arrays["x"], &y = arrays["y"], &da = arrays["da"];
    if (Array<S>* dx = blas2_wanted(arrays, "dx"))
      for (std::int64_t i = 0; i < m; ++i) {
        double terms = 0;
        const S value = blas2_product<S>(
            c, n, [&](std::int64_t j) { return da.load(i * n + j); },
            [&](std::int64_t j) { return y.load(j); }, terms);
        dx->store(i, value, terms);
      }
    if (Array<S>* dy = blas2_wanted(arrays, "dy"))
      for (std::int64_t j = 0; j < n; ++j) {
        double terms = 0;
        const S value = blas2_product<S>(
            c, m, [&](std::int64_t i) { return da.load(i * n + j); },
            [&](std::int64_t i) { return x.load(i); }, terms);
        dy->store(j, value, terms);
      }
    if (Array<S>* dc = blas2_wanted(arrays, "dc"))
      for (std::int64_t at = 0; at < m * n; ++at) dc->store(at, da.load(at));
  }
};

}  // namespace rooftile::harness
