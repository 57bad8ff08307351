#pragma once
// The activations and their derivatives as the equations read, in any scalar.
#include "rooftile/harness/bounded.h"
#include "rooftile/harness/spec.h"

namespace rooftile::harness {

template <class S>
S sigmoid_of(const S& v) {
  return S(1) / (S(1) + exp(-v));
}
/// x·s, and where s = 0 the limit 0.
template <class S>
S times_share(const S& x, const S& s) {
  const S y = x * s;
  return to_double(s) == 0 ? S(0) : y;
}
/// s + term, and where x is infinite the limit s.
template <class S>
S slope_of(const S& x, const S& s, const S& term) {
  const S slope = s + term;
  return std::isinf(to_double(x)) ? s : slope;
}

struct Relu {
  template <class S>
  static S value(const Case&, const S& x) {
    return std::isnan(to_double(x)) ? x : max(x, S(0));
  }
};

struct Sigmoid {
  template <class S>
  static S value(const Case&, const S& x) {
    return sigmoid_of(x);
  }
  template <class S>
  static S slope(const Case&, const S& y) {
    return y * (S(1) - y);
  }
};

struct Tanh {
  template <class S>
  static S value(const Case&, const S& x) {
    return tanh(x);
  }
  template <class S>
  static S slope(const Case&, const S& y) {
    return S(1) - y * y;
  }
};

struct Silu {
  template <class S>
  static S value(const Case& c, const S& x) {
    return times_share(x, sigmoid_of(S(c.parameter("beta", 1)) * x));
  }
  template <class S>
  static S slope(const Case& c, const S& x) {
    const S v = S(c.parameter("beta", 1)) * x;
    const S s = sigmoid_of(v);
    return slope_of(v, s, v * s * sigmoid_of(-v));
  }
};

/// The erf form, or with "tanh" the other one.
struct Gelu {
  static constexpr double k1 = 1.5957691216057308, k3 = k1 * 0.044715;

  template <class S>
  static S normal(const S& x) {
    return S(0.5) * erfc(-x * S(0.7071067811865476));
  }
  template <class S>
  static S value(const Case& c, const S& x) {
    return times_share(x, c.parameter("tanh") ? sigmoid_of(x * (S(k1) + S(k3) * (x * x))) : normal(x));
  }
  template <class S>
  static S slope(const Case& c, const S& x) {
    const S square = x * x;
    if (!c.parameter("tanh"))
      return slope_of(x, normal(x), x * (S(0.3989422804014327) * exp(-S(0.5) * square)));
    const S v = x * (S(k1) + S(k3) * square), s = sigmoid_of(v);
    return slope_of(x, s, x * s * sigmoid_of(-v) * (S(k1) + S(3 * k3) * square));
  }
};

/// y = f(x).
template <class F>
struct ActivationOracle {
  template <class S>
  static void run(const Case& c, Arrays<S>& a) {
    for (std::int64_t i = 0; i < a["y"].size(); ++i) a["y"].store(i, F::value(c, a["x"].load(i)));
  }
};
/// dx = dy·f'; the slope is a function of y where `kFromOutput`.
template <class F, bool kFromOutput = false>
struct ActivationBackwardOracle {
  template <class S>
  static void run(const Case& c, Arrays<S>& a) {
    auto& given = a[kFromOutput ? "y" : "x"];
    for (std::int64_t i = 0; i < a["dx"].size(); ++i)
      a["dx"].store(i, a["dy"].load(i) * F::slope(c, given.load(i)));
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
