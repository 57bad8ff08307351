#pragma once
// A double that carries a bound of its error, in units of the accumulator's rounding: the magnitude of an
// element-by-element function's tolerance comes from running its oracle on it once, by the rules of running
// error analysis (Wilkinson 1963; Higham, Accuracy and Stability of Numerical Algorithms, 3.3).
#include <limits>

#include "rooftile/harness/arrays.h"

namespace rooftile::harness {

/// `Format`: the accumulator, float or double.
template <class Format>
struct Bounded {
  double value = 0, error = 0;

  Bounded() = default;
  /// A constant: rounded, unless f32 holds it (of doubles: the oracle's is not the number that is meant).
  Bounded(double v) : value(v), error(static_cast<double>(static_cast<float>(v)) == v ? 0 : std::fabs(v)) {}

  static Bounded exact(double v) {
    Bounded b;
    b.value = v;
    return b;
  }
  /// A result: what its operands' errors grow to, and its own rounding, which below the smallest normal
  /// number is an absolute one.
  static Bounded rounded(double v, double from_operands) {
    Bounded b;
    b.value = v;
    b.error =
        from_operands + std::fmax(std::fabs(v), static_cast<double>(std::numeric_limits<Format>::min()));
    return b;
  }
};

template <class F>
inline double to_double(Bounded<F> a) {
  return a.value;
}
template <class F>
Bounded<F> operator+(Bounded<F> a, Bounded<F> b) {
  return Bounded<F>::rounded(a.value + b.value, a.error + b.error);
}
template <class F>
Bounded<F> operator-(Bounded<F> a, Bounded<F> b) {
  return Bounded<F>::rounded(a.value - b.value, a.error + b.error);
}
/// A change of sign rounds nothing.
template <class F>
Bounded<F> operator-(Bounded<F> a) {
  a.value = -a.value;
  return a;
}
template <class F>
Bounded<F> operator*(Bounded<F> a, Bounded<F> b) {
  return Bounded<F>::rounded(a.value * b.value, std::fabs(b.value) * a.error + std::fabs(a.value) * b.error);
}
template <class F>
Bounded<F> operator/(Bounded<F> a, Bounded<F> b) {
  const double v = a.value / b.value;
  return Bounded<F>::rounded(v, (a.error + std::fabs(v) * b.error) / std::fabs(b.value));
}
template <class F>
Bounded<F> max(Bounded<F> a, Bounded<F> b) {
  return a.value > b.value ? a : b;
}
/// The exponent is rounded, too, on its way to a power of 2.
template <class F>
Bounded<F> exp(Bounded<F> a) {
  const double v = std::exp(a.value);
  return Bounded<F>::rounded(v, v == 0 || std::isinf(v) ? 0 : v * (a.error + std::fabs(a.value)));
}
template <class F>
Bounded<F> log(Bounded<F> a) {
  return Bounded<F>::rounded(std::log(a.value), a.error / std::fabs(a.value));
}
/// Near 0 its slope has no bound: there √(a + e) is at most √e away, in units of the rounding u
/// as e is.
template <class F>
Bounded<F> sqrt(Bounded<F> a) {
  const double v = std::sqrt(a.value);
  return Bounded<F>::rounded(
      v, std::fmin(a.error / (2 * v),
                   std::sqrt(a.error / static_cast<double>(std::numeric_limits<F>::epsilon() / 2))));
}
template <class F>
Bounded<F> tanh(Bounded<F> a) {
  const double v = std::tanh(a.value);
  return Bounded<F>::rounded(v, (1 - v * v) * a.error);
}
/// e^(-x²) times what has a relative accuracy; on the other side 2 less that.
template <class F>
Bounded<F> erfc(Bounded<F> a) {
  const double v = std::erfc(a.value), tail = std::fmin(v, 2 - v), square = a.value * a.value;
  const double slope = 1.1283791670955126 * std::exp(-square);
  return Bounded<F>::rounded(v, tail > 0 ? tail * square + slope * a.error : 0);
}

namespace detail {
/// Runs an oracle on Bounded, and leaves values and magnitudes in arrays of double.
template <class Oracle, class Format = float>
void run_bounded(const Case& c, Arrays<double>& a) {
  Arrays<Bounded<Format>> bounded;
  for (auto& [name, array] : a.all()) {
    std::vector<Bounded<Format>> values;
    for (double v : array.values()) values.push_back(Bounded<Format>::exact(v));
    bounded[name] = Array<Bounded<Format>>(std::move(values));
    bounded[name].set_present(array.present());
  }
  Oracle::run(c, bounded);
  for (auto& [name, array] : a.all()) {
    const std::vector<Bounded<Format>>& values = bounded[name].values();
    for (std::size_t i = 0; i < values.size(); ++i)
      array.store(static_cast<std::int64_t>(i), values[i].value, values[i].error);
  }
}

/// Values in quadruple precision, magnitudes by the bound.
template <class Oracle>
void run_quad(const Case& c, Arrays<Quad>& a) {
  Arrays<double> doubles;
  for (auto& [name, array] : a.all()) {
    std::vector<double> values;
    for (const Quad& v : array.values()) values.push_back(to_double(v));
    doubles[name] = Array<double>(std::move(values));
    doubles[name].set_present(array.present());
  }
  run_bounded<Oracle, double>(c, doubles);
  Oracle::run(c, a);
  for (auto& [name, array] : a.all()) {
    if (array.written() == 0) continue;
    const std::vector<double>& magnitudes = doubles[name].magnitudes();
    for (std::size_t i = 0; i < magnitudes.size(); ++i)
      array.store(static_cast<std::int64_t>(i), array.values()[i], magnitudes[i]);
  }
}
}  // namespace detail

/// The oracles of a function whose tolerance's magnitude is the bound. kQuad: it takes f64.
template <class Oracle, bool kQuad = false>
OracleFunctions bounded_oracles() {
  OracleFunctions f = oracles<Oracle>();
  if constexpr (kQuad) f.quad = &detail::run_quad<Oracle>;
  f.exact = &detail::run_bounded<Oracle>;
  return f;
}

}  // namespace rooftile::harness
