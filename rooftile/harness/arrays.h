#pragma once
// What oracles compute with: dense arrays of any scalar, by operand name, and the scalars themselves.
#include <cmath>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rooftile/core/convert.h"

namespace rooftile::harness {

struct Case;

/// One operand in row-major order. An oracle reads by load and writes by store; which elements were touched
/// is kept, so that the stated bytes can be checked. Throws std::out_of_range beyond the last.
template <class S>
class Array {
 public:
  Array() = default;
  explicit Array(std::vector<S> values)
      : values_(std::move(values)), magnitudes_(values_.size()), touched_(values_.size()) {}

  bool present() const { return present_; }
  void set_present(bool present) { present_ = present; }
  std::int64_t size() const { return static_cast<std::int64_t>(values_.size()); }

  const S& load(std::int64_t i) const {
    touched_.at(static_cast<std::size_t>(i)) |= kRead;
    return values_[static_cast<std::size_t>(i)];
  }
  /// `magnitude`: what the tolerance of this element is a multiple of, beside its own rounding. `factors`:
  /// that of Tolerance::factor_rounding.
  void store(std::int64_t i, const S& value, double magnitude, double factors) {
    store(i, value, magnitude);
    if (factors_.empty()) factors_.resize(values_.size());
    factors_[static_cast<std::size_t>(i)] = factors;
  }
  void store(std::int64_t i, const S& value, double magnitude = 0) {
    touched_.at(static_cast<std::size_t>(i)) |= kWritten;
    values_[static_cast<std::size_t>(i)] = value;
    magnitudes_[static_cast<std::size_t>(i)] = magnitude;
  }

  std::vector<S>& values() { return values_; }
  const std::vector<S>& values() const { return values_; }
  std::vector<double>& magnitudes() { return magnitudes_; }
  const std::vector<double>& magnitudes() const { return magnitudes_; }
  std::vector<double>& factors() { return factors_; }  ///< empty: none
  std::int64_t touched() const { return touched_by(kRead | kWritten); }
  std::int64_t read() const { return touched_by(kRead); }
  std::int64_t written() const { return touched_by(kWritten); }

 private:
  static constexpr unsigned char kRead = 1, kWritten = 2;
  std::int64_t touched_by(unsigned char how) const {
    std::int64_t n = 0;
    for (unsigned char t : touched_) n += (t & how) != 0;
    return n;
  }
  bool present_ = true;
  std::vector<S> values_;
  std::vector<double> magnitudes_, factors_;
  mutable std::vector<unsigned char> touched_;
};

/// By operand name. Oracles look an array up for each element: few names are compared one after the other,
/// and none is copied (a map of strings took half of a random case's time). References stay valid.
template <class S>
class Arrays {
 public:
  Array<S>& operator[](std::string_view name) {
    for (auto& [its, array] : arrays_)
      if (same(its, name)) return array;
    return arrays_.emplace_back(name, Array<S>()).second;
  }
  using Named = std::deque<std::pair<std::string, Array<S>>>;
  const Named& all() const { return arrays_; }
  Named& all() { return arrays_; }
  /// Null: the case has none.
  Array<S>* find(std::string_view name) {
    for (auto& [its, array] : arrays_)
      if (same(its, name)) return array.present() ? &array : nullptr;
    return nullptr;
  }
  bool has(std::string_view name) const {
    for (const auto& [its, array] : arrays_)
      if (same(its, name)) return array.present();
    return false;
  }

 private:
  /// Letter by letter, in place: there are few.
  static bool same(std::string_view a, std::string_view b) {
    if (a.size() != b.size()) return false;
    for (std::size_t i = 0; i < a.size(); ++i)
      if (a[i] != b[i]) return false;
    return true;
  }
  Named arrays_;
};

/// A double that counts what is done with it, in operations(): to check the flops that an op states.
struct Counted {
  double value = 0;
  Counted() = default;
  Counted(double v) : value(v) {}
  static std::int64_t& operations() {
    thread_local std::int64_t count = 0;
    return count;
  }
};

/// A double rounded to `Format` (float, bf16) after every operation: intermediates and accumulators one step
/// lower.
template <class Format>
struct Rounded {
  double value = 0;
  Rounded() = default;
  Rounded(double v) : value(round(v)) {}
  static double round(double v) {
    if constexpr (std::is_same_v<Format, float>)
      return static_cast<double>(static_cast<float>(v));
    else
      return static_cast<double>(to_float(from_double<Format>(v)));
  }
};

inline Counted counted(double v) {
  ++Counted::operations();
  return Counted(v);
}
// clang-format off
inline Counted operator+(Counted a, Counted b) { return counted(a.value + b.value); }
inline Counted operator-(Counted a, Counted b) { return counted(a.value - b.value); }
inline Counted operator*(Counted a, Counted b) { return counted(a.value * b.value); }
inline Counted operator/(Counted a, Counted b) { return counted(a.value / b.value); }
inline Counted operator-(Counted a) { return Counted(-a.value); }
inline Counted max(Counted a, Counted b) { return counted(std::fmax(a.value, b.value)); }
inline Counted exp(Counted a) { return counted(std::exp(a.value)); }
inline Counted log(Counted a) { return counted(std::log(a.value)); }
inline Counted sqrt(Counted a) { return counted(std::sqrt(a.value)); }
inline Counted tanh(Counted a) { return counted(std::tanh(a.value)); }
inline Counted erfc(Counted a) { return counted(std::erfc(a.value)); }
inline Counted& operator+=(Counted& a, Counted b) { return a = a + b; }
inline double to_double(Counted a) { return a.value; }
template <class F> Rounded<F> operator+(Rounded<F> a, Rounded<F> b) { return Rounded<F>(a.value + b.value); }
template <class F> Rounded<F> operator-(Rounded<F> a, Rounded<F> b) { return Rounded<F>(a.value - b.value); }
template <class F> Rounded<F> operator*(Rounded<F> a, Rounded<F> b) { return Rounded<F>(a.value * b.value); }
template <class F> Rounded<F> operator/(Rounded<F> a, Rounded<F> b) { return Rounded<F>(a.value / b.value); }
template <class F> Rounded<F> operator-(Rounded<F> a) { return Rounded<F>(-a.value); }
template <class F> Rounded<F> max(Rounded<F> a, Rounded<F> b) { return Rounded<F>(std::fmax(a.value, b.value)); }
template <class F> Rounded<F> exp(Rounded<F> a) { return Rounded<F>(std::exp(a.value)); }
template <class F> Rounded<F> log(Rounded<F> a) { return Rounded<F>(std::log(a.value)); }
template <class F> Rounded<F> sqrt(Rounded<F> a) { return Rounded<F>(std::sqrt(a.value)); }
template <class F> Rounded<F> tanh(Rounded<F> a) { return Rounded<F>(std::tanh(a.value)); }
template <class F> Rounded<F> erfc(Rounded<F> a) { return Rounded<F>(std::erfc(a.value)); }
template <class F> Rounded<F>& operator+=(Rounded<F>& a, Rounded<F> b) { return a = a + b; }
template <class F> double to_double(Rounded<F> a) { return a.value; }
// clang-format on
inline double max(double a, double b) { return std::fmax(a, b); }
inline double exp(double a) { return std::exp(a); }
inline double log(double a) { return std::log(a); }
inline double sqrt(double a) { return std::sqrt(a); }
inline double tanh(double a) { return std::tanh(a); }
inline double erfc(double a) { return std::erfc(a); }
inline double to_double(double a) { return a; }

/// Quadruple precision, for the oracles of f64 kernels: + - · / √ only.
using Quad = __float128;
inline Quad max(Quad a, Quad b) { return a > b ? a : b; }
inline double to_double(Quad a) { return static_cast<double>(a); }
/// Of what doubles hold or of their squares: a double's root of a number brought into range, then a step of
/// Newton's method.
inline Quad sqrt(Quad a) {
  const bool large = a > 0x1p1000, small = a < 0x1p-900;
  const Quad scaled = a * (large ? 0x1p-600 : small ? 0x1p700 : 1) * (large ? 0x1p-600 : small ? 0x1p700 : 1);
  const Quad root = std::sqrt(static_cast<double>(scaled));
  const Quad better = root == 0 || root - root != 0 ? root : (root + scaled / root) / 2;
  return better * (large ? 0x1p600 : small ? 0x1p-700 : 1);
}

// By the C library's long double, of 64 bits or more: a double's rounding is 2^11 times as large. What it
// holds of the argument first, then a step along the slope for the rest.
inline Quad along(Quad a, long double at_nearest, long double slope) {
  const Quad rest = a - static_cast<Quad>(static_cast<long double>(a));
  return rest - rest == 0 && rest != 0 ? at_nearest + slope * rest : static_cast<Quad>(at_nearest);
}
inline Quad exp(Quad a) {
  const long double e = std::exp(static_cast<long double>(a));
  return along(a, e, std::isinf(e) ? 0 : e);
}
inline Quad log(Quad a) {
  const long double near = static_cast<long double>(a);
  return along(a, std::log(near), 1 / near);
}
inline Quad tanh(Quad a) {
  const long double t = std::tanh(static_cast<long double>(a));
  return along(a, t, 1 - t * t);
}
inline Quad erfc(Quad a) {
  const long double near = static_cast<long double>(a);
  return along(a, std::erfc(near), -1.12837916709551257390L * std::exp(-near * near));
}

/// One oracle for each scalar; null where an op needs none of that scalar (quad: only f64 kernels).
struct OracleFunctions {
  void (*exact)(const Case&, Arrays<double>&) = nullptr;
  void (*quad)(const Case&, Arrays<Quad>&) = nullptr;
  void (*counted)(const Case&, Arrays<Counted>&) = nullptr;
  void (*f32)(const Case&, Arrays<Rounded<float>>&) = nullptr;
  void (*bf16)(const Case&, Arrays<Rounded<bf16>>&) = nullptr;
};

/// From `struct SoftmaxOracle { template <class S> static void run(const Case&, Arrays<S>&); };`
template <class Oracle, bool kQuad = false>
OracleFunctions oracles() {
  OracleFunctions f;
  f.exact = &Oracle::template run<double>;
  if constexpr (kQuad) f.quad = &Oracle::template run<Quad>;
  f.counted = &Oracle::template run<Counted>;
  f.f32 = &Oracle::template run<Rounded<float>>;
  f.bf16 = &Oracle::template run<Rounded<bf16>>;
  return f;
}

}  // namespace rooftile::harness
