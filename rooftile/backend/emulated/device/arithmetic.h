#pragma once
// CUDA's integer and floating-point intrinsics. Those named _rn round as on the hardware; the approximate
// ones (__expf and its like) are the C library's, closer to the true value than a GPU's.

#include <bit>
#include <cmath>
#include <cstdint>
#include <type_traits>

#define ROOFTILE_PURE __attribute__((always_inline)) inline

ROOFTILE_PURE int __popc(unsigned x) { return __builtin_popcount(x); }
ROOFTILE_PURE int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
ROOFTILE_PURE int __ffs(int x) { return __builtin_ffs(x); }
ROOFTILE_PURE int __ffsll(long long x) { return __builtin_ffsll(x); }
ROOFTILE_PURE int __clz(int x) { return std::countl_zero(static_cast<unsigned>(x)); }
ROOFTILE_PURE int __clzll(long long x) { return std::countl_zero(static_cast<unsigned long long>(x)); }
ROOFTILE_PURE unsigned __brev(unsigned x) {
  x = (x >> 1 & 0x55555555u) | (x & 0x55555555u) << 1;
  x = (x >> 2 & 0x33333333u) | (x & 0x33333333u) << 2;
  x = (x >> 4 & 0x0f0f0f0fu) | (x & 0x0f0f0f0fu) << 4;
  return __builtin_bswap32(x);
}
/// high:low shifted; the upper word (left) or the lower one (right). Shifts count modulo 32, or stop at 32
/// (…c).
ROOFTILE_PURE unsigned __funnelshift_l(unsigned low, unsigned high, unsigned shift) {
  return static_cast<unsigned>(((std::uint64_t{high} << 32 | low) << (shift & 31)) >> 32);
}
ROOFTILE_PURE unsigned __funnelshift_r(unsigned low, unsigned high, unsigned shift) {
  return static_cast<unsigned>((std::uint64_t{high} << 32 | low) >> (shift & 31));
}
ROOFTILE_PURE unsigned __funnelshift_lc(unsigned low, unsigned high, unsigned shift) {
  return shift >= 32 ? low : __funnelshift_l(low, high, shift);
}
ROOFTILE_PURE unsigned __funnelshift_rc(unsigned low, unsigned high, unsigned shift) {
  return shift >= 32 ? high : __funnelshift_r(low, high, shift);
}
/// Four bytes of y:x, chosen by the nibbles of `selector`; a nibble's top bit repeats the byte's sign
/// instead.
ROOFTILE_PURE unsigned __byte_perm(unsigned x, unsigned y, unsigned selector) {
  const std::uint64_t bytes = std::uint64_t{y} << 32 | x;
  unsigned result = 0;
  for (unsigned i = 0; i < 4; ++i) {
    const unsigned nibble = selector >> 4 * i & 15,
                   byte = static_cast<unsigned>(bytes >> 8 * (nibble & 7)) & 0xff;
    result |= (nibble & 8 ? (byte & 0x80 ? 0xffu : 0u) : byte) << 8 * i;
  }
  return result;
}
ROOFTILE_PURE int __mulhi(int x, int y) { return static_cast<int>(std::int64_t{x} * y >> 32); }
ROOFTILE_PURE unsigned __umulhi(unsigned x, unsigned y) {
  return static_cast<unsigned>(std::uint64_t{x} * y >> 32);
}
ROOFTILE_PURE unsigned long long __umul64hi(unsigned long long x, unsigned long long y) {
  __extension__ typedef unsigned __int128 Wide;
  return static_cast<unsigned long long>(static_cast<Wide>(x) * y >> 64);
}

ROOFTILE_PURE unsigned __float_as_uint(float x) { return std::bit_cast<unsigned>(x); }
ROOFTILE_PURE int __float_as_int(float x) { return std::bit_cast<int>(x); }
ROOFTILE_PURE float __uint_as_float(unsigned x) { return std::bit_cast<float>(x); }
ROOFTILE_PURE float __int_as_float(int x) { return std::bit_cast<float>(x); }
ROOFTILE_PURE long long __double_as_longlong(double x) { return std::bit_cast<long long>(x); }
ROOFTILE_PURE double __longlong_as_double(long long x) { return std::bit_cast<double>(x); }

ROOFTILE_PURE float __fadd_rn(float x, float y) { return x + y; }
ROOFTILE_PURE float __fsub_rn(float x, float y) { return x - y; }
ROOFTILE_PURE float __fmul_rn(float x, float y) { return x * y; }
ROOFTILE_PURE float __fdiv_rn(float x, float y) { return x / y; }
ROOFTILE_PURE float __fmaf_rn(float x, float y, float z) { return __builtin_fmaf(x, y, z); }
ROOFTILE_PURE float __fsqrt_rn(float x) { return __builtin_sqrtf(x); }
ROOFTILE_PURE float __frcp_rn(float x) { return 1 / x; }
ROOFTILE_PURE double __dadd_rn(double x, double y) { return x + y; }
ROOFTILE_PURE double __dmul_rn(double x, double y) { return x * y; }
ROOFTILE_PURE double __ddiv_rn(double x, double y) { return x / y; }
ROOFTILE_PURE double __fma_rn(double x, double y, double z) { return __builtin_fma(x, y, z); }
ROOFTILE_PURE double __dsqrt_rn(double x) { return __builtin_sqrt(x); }
ROOFTILE_PURE float __fdividef(float x, float y) { return x / y; }
ROOFTILE_PURE float __expf(float x) { return ::expf(x); }
ROOFTILE_PURE float __exp10f(float x) { return ::exp10f(x); }
ROOFTILE_PURE float __logf(float x) { return ::logf(x); }
ROOFTILE_PURE float __log2f(float x) { return ::log2f(x); }
ROOFTILE_PURE float __log10f(float x) { return ::log10f(x); }
ROOFTILE_PURE float __powf(float x, float y) { return ::powf(x, y); }
ROOFTILE_PURE float __sinf(float x) { return ::sinf(x); }
ROOFTILE_PURE float __cosf(float x) { return ::cosf(x); }
ROOFTILE_PURE float __frsqrt_rn(float x) {
  return static_cast<float>(1 / __builtin_sqrt(static_cast<double>(x)));
}
ROOFTILE_PURE float rsqrtf(float x) { return __frsqrt_rn(x); }
ROOFTILE_PURE double rsqrt(double x) { return 1 / __builtin_sqrt(x); }
ROOFTILE_PURE float __saturatef(float x) { return x > 0 ? (x < 1 ? x : 1) : 0; }  // NaN to 0

ROOFTILE_PURE int __float2int_rn(float x) { return static_cast<int>(__builtin_nearbyintf(x)); }
ROOFTILE_PURE int __float2int_rz(float x) { return static_cast<int>(x); }
ROOFTILE_PURE float __int2float_rn(int x) { return static_cast<float>(x); }
ROOFTILE_PURE float __uint2float_rn(unsigned x) { return static_cast<float>(x); }
ROOFTILE_PURE float __double2float_rn(double x) { return static_cast<float>(x); }

#define ROOFTILE_MIN_MAX(type)                                               \
  ROOFTILE_PURE constexpr type min(type a, type b) { return b < a ? b : a; } \
  ROOFTILE_PURE constexpr type max(type a, type b) { return a < b ? b : a; }
ROOFTILE_MIN_MAX(int)
ROOFTILE_MIN_MAX(unsigned)
ROOFTILE_MIN_MAX(long)
ROOFTILE_MIN_MAX(unsigned long)
ROOFTILE_MIN_MAX(long long)
ROOFTILE_MIN_MAX(unsigned long long)
#undef ROOFTILE_MIN_MAX
ROOFTILE_PURE float min(float a, float b) { return ::fminf(a, b); }
ROOFTILE_PURE float max(float a, float b) { return ::fmaxf(a, b); }
ROOFTILE_PURE double min(double a, double b) { return ::fmin(a, b); }
ROOFTILE_PURE double max(double a, double b) { return ::fmax(a, b); }
