#pragma once
// Half precision: conversions, bit for bit as the hardware's (to nearest, ties to even; every NaN becomes
// 0x7fff). Arithmetic on halves is left out: kernels compute in float.
#include <bit>
#include <cstdint>

#include "rooftile/backend/emulated/device/arithmetic.h"
#include "rooftile/backend/emulated/device/vectors.h"
#include "rooftile/backend/emulated/device/words.h"

struct alignas(2) __half {
  std::uint16_t bits;
};
struct alignas(4) __half2 {
  __half x, y;
};
using half = __half;
using half2 = __half2;

ROOFTILE_PURE __half __ushort_as_half(unsigned short bits) { return {bits}; }
ROOFTILE_PURE unsigned short __half_as_ushort(__half x) { return x.bits; }

ROOFTILE_PURE float __half2float(__half h) {
  const std::uint32_t sign = std::uint32_t{h.bits & 0x8000u} << 16, rest = h.bits & 0x7fffu;
  if (rest >= 0x7c00) return std::bit_cast<float>(rest > 0x7c00 ? 0x7fffffffu : sign | 0x7f800000u);
  // Exponent and mantissa in a float's place, 112 powers of two too small: the product is exact, subnormals
  // too.
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(std::bit_cast<float>(rest << 13) * 0x1p112f) |
                              sign);
}
ROOFTILE_PURE __half __float2half_rn(float x) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(x), rest = bits & 0x7fffffff;
  const auto sign = static_cast<std::uint16_t>(bits >> 16 & 0x8000);
  if (rest > 0x7f800000) return {0x7fff};
  if (rest >= 0x477ff000) return {static_cast<std::uint16_t>(sign | 0x7c00)};  // from 65520 on
  if (rest < 0x38800000) {  // subnormal: one addition rounds to multiples of 2^-24
    const float sum = std::bit_cast<float>(rest) + 0.5f;
    return {static_cast<std::uint16_t>(sign | (std::bit_cast<std::uint32_t>(sum) - 0x3f000000))};
  }
  const std::uint32_t rounded = rest + 0xfff + (rest >> 13 & 1);
  return {static_cast<std::uint16_t>(sign | (rounded - 0x38000000) >> 13)};
}
ROOFTILE_PURE __half __float2half(float x) { return __float2half_rn(x); }
ROOFTILE_PURE __half2 __halves2half2(__half x, __half y) { return {x, y}; }
ROOFTILE_PURE __half2 __floats2half2_rn(float x, float y) { return {__float2half_rn(x), __float2half_rn(y)}; }
ROOFTILE_PURE __half2 __float22half2_rn(float2 v) { return __floats2half2_rn(v.x, v.y); }
ROOFTILE_PURE float2 __half22float2(__half2 v) { return {__half2float(v.x), __half2float(v.y)}; }
ROOFTILE_PURE float __low2float(__half2 v) { return __half2float(v.x); }
ROOFTILE_PURE float __high2float(__half2 v) { return __half2float(v.y); }
