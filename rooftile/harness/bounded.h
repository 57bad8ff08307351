#pragma once
// A double that carries a bound of its error, in units of the accumulator's rounding: the magnitude of an
// element-by-element function's tolerance comes from running its oracle on it once, by the rules of running
// error analysis (Wilkinson 1963; Higham, Accuracy and Stability of Numerical Algorithms, 3.3).
#include "rooftile/harness/arrays.h"

namespace rooftile::harness {

struct Bounded {
  double value = 0, error = 0;

  Bounded() = default;
  /// A constant: rounded, unless f32 holds it.
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
    b.error = from_operands + std::fmax(std::fabs(v), 0x1p-126);
    return b;
  }
};

inline double to_double(Bounded a) { return a.value; }
inline Bounded operator+(Bounded a, Bounded b) {
  return Bounded::rounded(a.value + b.value, a.error + b.error);
}
inline Bounded operator-(Bounded a, Bounded b) {
  return Bounded::rounded(a.value - b.value, a.error + b.error);
}
/// A change of sign rounds nothing.
inline Bounded operator-(Bounded a) {
  a.value = -a.value;
  return a;
}
inline Bounded operator*(Bounded a, Bounded b) {
  return Bounded::rounded(a.value * b.value, std::fabs(b.value) * a.error + std::fabs(a.value) * b.error);
}
inline Bounded operator/(Bounded a, Bounded b) {
  const double v = a.value / b.value;
  return Bounded::rounded(v, (a.error + std::fabs(v) * b.error) / std::fabs(b.value));
}
inline Bounded max(Bounded a, Bounded b) { return a.value > b.value ? a : b; }
/// The exponent is rounded, too, on its way to a power of 2.
inline Bounded exp(Bounded a) {
  const double v = std::exp(a.value);
  return Bounded::rounded(v, v == 0 || std::isinf(v) ? 0 : v * (a.error + std::fabs(a.value)));
}
inline Bounded log(Bounded a) { return Bounded::rounded(std::log(a.value), a.error / std::fabs(a.value)); }
/// Near 0 its slope has no bound: there √(a + e) is at most √e away, in units of 2^-24 as e is.
inline Bounded sqrt(Bounded a) {
  const double v = std::sqrt(a.value);
  return Bounded::rounded(v, std::fmin(a.error / (2 * v), std::sqrt(a.error) * 0x1p12));
}
inline Bounded tanh(Bounded a) {
  const double v = std::tanh(a.value);
  return Bounded::rounded(v, (1 - v * v) * a.error);
}
/// e^(-x²) times what has a relative accuracy; on the other side 2 less that.
inline Bounded erfc(Bounded a) {
  const double v = std::erfc(a.value), tail = std::fmin(v, 2 - v), square = a.value * a.value;
  const double slope = 1.1283791670955126 * std::exp(-square);
  return Bounded::rounded(v, tail > 0 ? tail * square + slope * a.error : 0);
}

namespace detail {
/// Runs an oracle on Bounded, and leaves values and magnitudes in arrays of double.
template <class Oracle>
void run_bounded(const Case& c, Arrays<double>& a) {
  Arrays<Bounded> bounded;
  for (auto& [name, array] : a.all()) {
    std::vector<Bounded> values;
    for (double v : array.values()) values.push_back(Bounded::exact(v));
    bounded[name] = Array<Bounded>(std::move(values));
    bounded[name].set_present(array.present());
  }
  Oracle::run(c, bounded);
  for (auto& [name, array] : a.all()) {
    const std::vector<Bounded>& values = bounded[name].values();
    for (std::size_t i = 0; i < values.size(); ++i)
      array.store(static_cast<std::int64_t>(i), values[i].value, values[i].error);
  }
}
}  // namespace detail

/// The oracles of a function whose tolerance's magnitude is the bound.
template <class Oracle>
OracleFunctions bounded_oracles() {
  OracleFunctions f = oracles<Oracle>();
  f.exact = &detail::run_bounded<Oracle>;
  return f;
}

}  // namespace rooftile::harness
