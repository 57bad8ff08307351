#pragma once
// bfloat16: conversions, bit for bit as the hardware's (to nearest, ties to even; every NaN becomes 0x7fff).
// Arithmetic on them is left out: kernels compute in float.
#include <bit>
#include <cstdint>

#include "rooftile/backend/emulated/device/arithmetic.h"
#include "rooftile/backend/emulated/device/vectors.h"
#include "rooftile/backend/emulated/device/words.h"

struct alignas(2) __nv_bfloat16 {
  std::uint16_t bits;
};
struct alignas(4) __nv_bfloat162 {
  __nv_bfloat16 x, y;
};
using nv_bfloat16 = __nv_bfloat16;
using nv_bfloat162 = __nv_bfloat162;

ROOFTILE_PURE __nv_bfloat16 __ushort_as_bfloat16(unsigned short bits) { return {bits}; }
ROOFTILE_PURE unsigned short __bfloat16_as_ushort(__nv_bfloat16 x) { return x.bits; }
ROOFTILE_PURE float __bfloat162float(__nv_bfloat16 x) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(x.bits) << 16);
}
ROOFTILE_PURE __nv_bfloat16 __float2bfloat16_rn(float x) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(x);
  if ((bits & 0x7fffffff) > 0x7f800000) return {0x7fff};
  return {static_cast<std::uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16)};
}
ROOFTILE_PURE __nv_bfloat16 __float2bfloat16(float x) { return __float2bfloat16_rn(x); }
ROOFTILE_PURE __nv_bfloat162 __floats2bfloat162_rn(float x, float y) {
  return {__float2bfloat16_rn(x), __float2bfloat16_rn(y)};
}
ROOFTILE_PURE __nv_bfloat162 __float22bfloat162_rn(float2 v) { return __floats2bfloat162_rn(v.x, v.y); }
ROOFTILE_PURE float2 __bfloat1622float2(__nv_bfloat162 v) {
  return {__bfloat162float(v.x), __bfloat162float(v.y)};
}
