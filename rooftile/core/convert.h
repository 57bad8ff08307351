#pragma once
#include <bit>
#include <cmath>
#include <cstdint>

#include "rooftile/core/dtype.h"

namespace rooftile {

/// One element to float or double, exactly, and back, rounded to nearest with ties to even. Plain C++ for
/// oracles and tests; kernels convert whole vectors (rooftile/tile).

namespace detail {

/// A format of 1 sign, `E` exponent and `M` mantissa bits. `Finite`: no infinity, all ones is NaN (f8e4m3).
template <int E, int M, bool Finite = false>
struct SmallFloat {
  static constexpr int kBias = (1 << (E - 1)) - 1;
  static constexpr std::uint32_t kSign = 1u << (E + M);
  static constexpr std::uint32_t kExponent = ((1u << E) - 1) << M;
  static constexpr std::uint32_t kNaN = Finite ? kSign - 1 : kExponent | (1u << (M - 1));
  static constexpr std::uint32_t kLimit = Finite ? kNaN : kExponent;  // codes from here on are not finite

  /// In integers: rounded to nearest whatever the caller's rounding mode.
  static std::uint32_t encode(double x) {
    const std::uint64_t bits = std::bit_cast<std::uint64_t>(x), magnitude = bits & ~(1ull << 63);
    const std::uint32_t sign = bits >> 63 ? kSign : 0;
    if (magnitude > kInfinity) return sign | kNaN;
    const int exponent = int(magnitude >> 52) - 1023;
    if (exponent > kBias + 1) return sign | kLimit;
    const int normal = exponent > 1 - kBias ? exponent : 1 - kBias, shift = 52 - M + normal - exponent;
    if (shift > 53) return sign;  // less than half of the smallest number
    const std::uint64_t significand = (magnitude & (kImplicit - 1)) | kImplicit, half = 1ull << (shift - 1),
                        odd = significand >> shift & 1;
    const std::uint64_t units = (significand + (half - 1) + odd) >> shift;
    const std::uint32_t code = (std::uint32_t(normal + kBias - 1) << M) + std::uint32_t(units);
    return sign | (code < kLimit ? code : kLimit);
  }
  static double decode(std::uint32_t code) {
    const std::uint64_t sign = code & kSign ? 1ull << 63 : 0;
    code &= kSign - 1;
    if (code > kLimit || (Finite && code == kNaN)) return std::bit_cast<double>(0x7FF8ull << 48);
    if (code == kLimit) return std::bit_cast<double>(sign | kInfinity);
    const std::uint64_t mantissa = code & ((1u << M) - 1);
    if (code >> M == 0) {
      const double value = double(mantissa) * kSmallest;
      return sign ? -value : value;
    }
    return std::bit_cast<double>(sign | std::uint64_t(int(code >> M) - kBias + 1023) << 52 |
                                 mantissa << (52 - M));
  }

 private:
  static constexpr std::uint64_t kInfinity = 0x7FFull << 52, kImplicit = 1ull << 52;
  static constexpr double kSmallest = std::bit_cast<double>(std::uint64_t(1024 - kBias - M) << 52);
};

template <class T>
struct FormatOf;
template <>
struct FormatOf<f16> : SmallFloat<5, 10> {};
template <>
struct FormatOf<bf16> : SmallFloat<8, 7> {};
template <>
struct FormatOf<f8e4m3> : SmallFloat<4, 3, true> {};
template <>
struct FormatOf<f8e5m2> : SmallFloat<5, 2> {};
}  // namespace detail

inline float to_float(bf16 x) { return std::bit_cast<float>(std::uint32_t(x.bits) << 16); }
inline float to_float(tf32 x) { return std::bit_cast<float>(x.bits); }
template <class T>
float to_float(T x) {
  return float(detail::FormatOf<T>::decode(x.bits));
}

/// From double in one rounding (through float there would be two).
template <class T>
T from_double(double x) {
  return {static_cast<decltype(T::bits)>(detail::FormatOf<T>::encode(x))};
}
template <>
inline tf32 from_double<tf32>(double x) {
  return {detail::SmallFloat<8, 10>::encode(x) << 13};
}

/// Significand bits, the implicit one included: half an ulp of y is 2^-significand_bits · |y| at most.
constexpr int significand_bits(DType type) {
  constexpr int table[kDTypes] = {53, 24, 11, 11, 8, 4, 3, 0, 0, 0, 0, 0, 0};
  return is_known(type) ? table[static_cast<int>(type)] : 0;
}

/// The smallest positive number of a format; 1 for integers.
constexpr double smallest_subnormal(DType type) {
  constexpr double table[kDTypes] = {0x1p-1074, 0x1p-149, 0x1p-136, 0x1p-24, 0x1p-133, 0x1p-9, 0x1p-16,
                                     1,         1,        1,        1,       1,        1};
  return is_known(type) ? table[static_cast<int>(type)] : 0;
}

}  // namespace rooftile
