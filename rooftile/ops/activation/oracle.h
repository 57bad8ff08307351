#pragma once
// The activations and their derivatives as the equations read, in any scalar.
#include "rooftile/harness/lane_oracle.h"
#include "rooftile/harness/spec.h"

namespace rooftile::harness {

/// The normal distribution function.
constexpr auto normal_of = []<class S>(const S& x) { return S(0.5) * erfc(-x * S(0.7071067811865476)); };
/// Of the exponential that does not overflow, as its error bound would in f64.
constexpr auto sigmoid_of = []<class S>(const S& v) {
  const S e = exp(to_double(v) < 0 ? v : -v);
  return (to_double(v) < 0 ? e : S(1)) / (S(1) + e);
};
/// x·s, and where s = 0 the limit 0. Of a small x the product: an s that is 0 in f64 may not be 0 in more.
constexpr auto times_share = []<class S>(const S& x, const S& s) {
  const S y = x * s;
  return to_double(s) == 0 && !(std::fabs(to_double(x)) < 100) ? S(0) : y;
};
/// s + term, and where x is infinite the limit s.
constexpr auto slope_of = []<class S>(const S& x, const S& s, const S& term) {
  const S slope = s + term;
  return std::isinf(to_double(x)) ? s : slope;
};

// f, and f' as a function of x, or of y where that is all it takes.
struct Relu {
  static constexpr auto value = []<class S>(const Case&, const S& x) {
    return std::isnan(to_double(x)) ? x : max(x, S(0));
  };
  static constexpr auto backward = []<class S>(const Case&, const S& x, const S& dy) {
    return to_double(x) <= 0 ? S(0) : dy;
  };
};
struct Sigmoid {
  static constexpr auto value = []<class S>(const Case&, const S& x) { return sigmoid_of(x); };
  static constexpr auto slope = []<class S>(const Case&, const S& y) { return y * (S(1) - y); };
};
struct Tanh {
  static constexpr auto value = []<class S>(const Case&, const S& x) { return tanh(x); };
  static constexpr auto slope = []<class S>(const Case&, const S& y) { return S(1) - y * y; };
};
struct Silu {
  static constexpr auto value = []<class S>(const Case& c, const S& x) {
    return times_share(x, sigmoid_of(S(c.parameter("beta", 1)) * x));
  };
  static constexpr auto slope = []<class S>(const Case& c, const S& x) {
    const S v = S(c.parameter("beta", 1)) * x, s = sigmoid_of(v);
    return slope_of(v, s, v * s * sigmoid_of(-v));
  };
};
/// The erf form, or with "tanh" the other one.
struct Gelu {
  static constexpr double k1 = 1.5957691216057308, k3 = k1 * 0.044715;
  static constexpr auto value = []<class S>(const Case& c, const S& x) {
    return times_share(x, c.parameter("tanh") ? sigmoid_of(x * (S(k1) + S(k3) * (x * x))) : normal_of(x));
  };
  static constexpr auto slope = []<class S>(const Case& c, const S& x) {
    const S square = x * x;
    if (!c.parameter("tanh"))
      return slope_of(x, normal_of(x), x * (S(0.3989422804014327) * exp(-S(0.5) * square)));
    const S v = x * (S(k1) + S(k3) * square), s = sigmoid_of(v);
    return slope_of(x, s, x * s * sigmoid_of(-v) * (S(k1) + S(3 * k3) * square));
  };
};
/// dx = dy·f'.
template <class F>
constexpr auto kBackward =
    []<class S>(const Case& c, const S& x, const S& dy) { return dy * F::slope(c, x); };

/// With more than 1 as β a masked x has a share and a slope of 0 in f32, not in the oracle: beside an
/// infinity that is NaN.
inline bool suits_silu(const Case& c) {
  return c.fill != Fill::masked || std::fabs(c.parameter("beta", 1)) <= 1;
}

}  // namespace rooftile::harness
