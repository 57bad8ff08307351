#pragma once
// The activations as their equations read, in any scalar, with the magnitude of each one's error: what its
// terms come to, and for an exponential 1 + |exponent|, since that is what the exponent's rounding grows to.
// Below the smallest normal number f32 has an absolute accuracy only, which a factor then scales: an
// exponential's magnitude is at least that number.
#include "rooftile/harness/spec.h"

namespace rooftile::harness {

template <class S>
struct Activated {
  S value;
  double magnitude;
};

inline double at_least_normal(double magnitude) { return std::fmax(magnitude, 0x1p-126); }

/// σ(v) and its magnitude.
template <class S>
Activated<S> sigmoid_of(const S& v) {
  const S s = S(1) / (S(1) + exp(S(0) - v));
  const double y = to_double(s), size = std::fabs(to_double(v));
  return {s, at_least_normal(y * (1 + (1 - y > 0 && std::isfinite(size) ? size * (1 - y) : 0)))};
}

/// x·s, where s = 0 the limit 0.
template <class S>
Activated<S> times_share(const S& x, const Activated<S>& s) {
  const S y = x * s.value;
  return {to_double(s.value) == 0 ? S(0) : y, std::fabs(to_double(x)) * s.magnitude};
}

/// The magnitude of factor·e^-exponent, which is `term`.
inline double product(double factor, double term, double exponent) {
  return std::fmax(std::fabs(term) * (1 + std::fabs(exponent)), std::fabs(factor) * 0x1p-126);
}

struct Sigmoid {
  template <class S>
  static Activated<S> value(const Case&, const S& x) {
    return sigmoid_of(x);
  }
  /// From y.
  template <class S>
  static Activated<S> slope(const Case&, const S& y) {
    const double size = std::fabs(to_double(y));
    return {y * (S(1) - y), size * (1 + size)};
  }
};

struct Tanh {
  template <class S>
  static Activated<S> value(const Case&, const S& x) {
    const S y = tanh(x);
    return {y, std::fabs(to_double(y))};
  }
  /// From y.
  template <class S>
  static Activated<S> slope(const Case&, const S& y) {
    const S square = y * y;
    return {S(1) - square, 1 + to_double(square)};
  }
};

struct Silu {
  template <class S>
  static Activated<S> value(const Case& c, const S& x) {
    return times_share(x, sigmoid_of(S(c.parameter("beta", 1)) * x));
  }
  template <class S>
  static Activated<S> slope(const Case& c, const S& x) {
    const S v = S(c.parameter("beta", 1)) * x;
    const Activated<S> s = sigmoid_of(v);
    if (std::isinf(to_double(v))) return s;
    const S second = v * s.value * (S(1) - s.value);
    return {s.value + second, s.magnitude + product(to_double(v), to_double(second), to_double(v))};
  }
};

/// The erf form, or with "tanh" the other one.
struct Gelu {
  static constexpr double k1 = 1.5957691216057308, k3 = k1 * 0.044715;

  template <class S>
  static Activated<S> value(const Case& c, const S& x) {
    return times_share(x, c.parameter("tanh") ? sigmoid_of(x * (S(k1) + S(k3) * (x * x))) : normal(x));
  }
  template <class S>
  static Activated<S> slope(const Case& c, const S& x) {
    const S square = x * x;
    if (c.parameter("tanh")) {
      const S v = x * (S(k1) + S(k3) * square);
      const Activated<S> s = sigmoid_of(v);
      if (std::isinf(to_double(x))) return s;
      const S second = x * s.value * (S(1) - s.value) * (S(k1) + S(3 * k3) * square);
      return {s.value + second, s.magnitude + product(to_double(v), to_double(second), to_double(v))};
    }
    const Activated<S> phi = normal(x);
    const S density = S(0.3989422804014327) * exp(S(-0.5) * square);
    if (to_double(density) == 0) return phi;
    const S second = x * density;
    return {phi.value + second,
            phi.magnitude + product(to_double(x), to_double(second), to_double(square) / 2)};
  }

 private:
  /// Φ(x).
  template <class S>
  static Activated<S> normal(const S& x) {
    const S phi = S(0.5) * erfc(S(0) - x * S(0.7071067811865476));
    const double p = to_double(phi), square = to_double(x) * to_double(x);
    const double tail = std::fmin(p, 1 - p);
    return {phi, at_least_normal(p + (tail > 0 ? tail * (1 + square / 2) : 0))};
  }
};

struct Relu {
  template <class S>
  static Activated<S> value(const Case&, const S& x) {
    return {std::isnan(to_double(x)) ? x : max(x, S(0)), 0};
  }
};

template <class F>
struct ActivationOracle {
  template <class S>
  static void run(const Case& c, Arrays<S>& a) {
    for (std::int64_t i = 0; i < a["y"].size(); ++i) {
      const Activated<S> y = F::value(c, a["x"].load(i));
      a["y"].store(i, y.value, y.magnitude);
    }
  }
};
/// dx = dy·f'; the slope comes from y where `kFromOutput`.
template <class F, bool kFromOutput>
struct ActivationBackwardOracle {
  template <class S>
  static void run(const Case& c, Arrays<S>& a) {
    auto& given = a[kFromOutput ? "y" : "x"];
    for (std::int64_t i = 0; i < a["dx"].size(); ++i) {
      const Activated<S> slope = F::slope(c, given.load(i));
      const S dy = a["dy"].load(i);
      a["dx"].store(i, dy * slope.value, std::fabs(to_double(dy)) * slope.magnitude);
    }
  }
};
struct ReluBackwardOracle {
  template <class S>
  static void run(const Case&, Arrays<S>& a) {
    for (std::int64_t i = 0; i < a["dx"].size(); ++i) {
      const S dy = a["dy"].load(i);
      a["dx"].store(i, to_double(a["x"].load(i)) <= 0 ? S(0) : dy);
    }
  }
};

}  // namespace rooftile::harness
