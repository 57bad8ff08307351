#pragma once
// Any CPU: 128-bit GNU vectors, which every 64-bit target has (SSE2, NEON). No fused multiply-add: `vfma` is
// a multiply, then an add. x86-64 intrinsics only where GNU vectors have no word for it.
#if defined(__x86_64__)
#include <emmintrin.h>
#endif
#include "rooftile/tile/cpu/vector.h"

namespace rooftile::tile {
inline namespace baseline {

inline constexpr bool kHasMaskedLoads = false;
inline constexpr bool kHasLookup = false;
inline constexpr bool kHasLookup16 = false;
#if defined(__x86_64__)
inline constexpr bool kHasStreaming = true;
#else
inline constexpr bool kHasStreaming = false;
#endif

// Where one operand is NaN, max and min give the second. GCC makes maxps of these selections at -O2 only
// where it can prove the order of operands, so x86 says it outright.
#if defined(__x86_64__)
ROOFTILE_TILE Vec<float> vmax(Vec<float> a, Vec<float> b) {
  return (Vec<float>)_mm_max_ps((__m128)a, (__m128)b);
}
ROOFTILE_TILE Vec<float> vmin(Vec<float> a, Vec<float> b) {
  return (Vec<float>)_mm_min_ps((__m128)a, (__m128)b);
}
ROOFTILE_TILE Vec<double> vmax(Vec<double> a, Vec<double> b) {
  return (Vec<double>)_mm_max_pd((__m128d)a, (__m128d)b);
}
ROOFTILE_TILE Vec<double> vmin(Vec<double> a, Vec<double> b) {
  return (Vec<double>)_mm_min_pd((__m128d)a, (__m128d)b);
}
ROOFTILE_TILE Vec<float> vsqrt(Vec<float> a) { return (Vec<float>)_mm_sqrt_ps((__m128)a); }
ROOFTILE_TILE Vec<double> vsqrt(Vec<double> a) { return (Vec<double>)_mm_sqrt_pd((__m128d)a); }
#else
template <class V>
ROOFTILE_TILE V vmax(V a, V b) {
  return a > b ? a : b;
}
template <class V>
ROOFTILE_TILE V vmin(V a, V b) {
  return a < b ? a : b;
}
ROOFTILE_TILE Vec<float> vsqrt(Vec<float> a) {
  for (int i = 0; i < kVecLanes<float>; ++i) a[i] = __builtin_sqrtf(a[i]);
  return a;
}
ROOFTILE_TILE Vec<double> vsqrt(Vec<double> a) {
  for (int i = 0; i < kVecLanes<double>; ++i) a[i] = __builtin_sqrt(a[i]);
  return a;
}
#endif
template <class V>
ROOFTILE_TILE V vfma(V a, V b, V c) {
  return a * b + c;
}
/// p · 2^n for whole n of magnitude up to 252: two steps, because 2^n itself may not be a normal number.
ROOFTILE_TILE Vec<float> vscale(Vec<float> p, Vec<float> n) {
  const Vec<std::int32_t> whole = __builtin_convertvector(n, Vec<std::int32_t>);
  const Vec<std::int32_t> half = whole >> 1;
  return p * (Vec<float>)((half + 127) << 23) * (Vec<float>)((whole - half + 127) << 23);
}

/// The lanes' lower halves multiplied, to all 64 bits.
ROOFTILE_TILE Vec<std::uint64_t> vmul_low(Vec<std::uint64_t> a, Vec<std::uint64_t> b) {
#if defined(__x86_64__)
  return (Vec<std::uint64_t>)_mm_mul_epu32((__m128i)a, (__m128i)b);
#else
  return (a & 0xFFFFFFFF) * (b & 0xFFFFFFFF);
#endif
}

Vec<float> vlookup(const float (&table)[32],
                   Vec<std::int32_t> index);  // kHasLookup is false: named, never called
Vec<float> vlookup16(const float (&table)[16],
                     Vec<std::int32_t> index);  // nor this one: kHasLookup16

// Elements of memory to lanes.
ROOFTILE_TILE void widen(const float* p, Vec<float>& v) { v = load_unaligned<Vec<float>>(p); }
ROOFTILE_TILE void widen(const double* p, Vec<double>& v) { v = load_unaligned<Vec<double>>(p); }
ROOFTILE_TILE void widen(const float* p, Vec<double>& v) {
  v = __builtin_convertvector((load_unaligned<Narrow<float, double>>(p)), Vec<double>);
}
ROOFTILE_TILE Vec<std::uint32_t> half_words(const void* p) {
  return __builtin_convertvector((load_unaligned<Narrow<std::uint16_t, float>>(p)), Vec<std::uint32_t>);
}
ROOFTILE_TILE void widen(const bf16* p, Vec<float>& v) { v = (Vec<float>)(half_words(p) << 16); }
ROOFTILE_TILE void widen(const f16* p, Vec<float>& v) {
  const Vec<std::uint32_t> bits = half_words(p);
  // The exponent moves from bias 15 to 127 by an exact product, which also makes subnormals normal.
  const Vec<std::uint32_t> moved = (bits & 0x7fff) << 13;
  const Vec<std::uint32_t> magnitude = (Vec<std::uint32_t>)((Vec<float>)moved * 0x1p112f);
  const Vec<std::uint32_t> special = (Vec<std::uint32_t>)((bits & 0x7c00) == 0x7c00);
  v = (Vec<float>)(((bits & 0x8000) << 16) | (special & (moved | 0x7f800000)) | (~special & magnitude));
}
ROOFTILE_TILE void widen(const std::int32_t* p, Vec<std::int32_t>& v) {
  v = load_unaligned<Vec<std::int32_t>>(p);
}
ROOFTILE_TILE void widen(const std::uint8_t* p, Vec<std::int32_t>& v) {
  v = __builtin_convertvector((load_unaligned<Narrow<std::uint8_t, float>>(p)), Vec<std::int32_t>);
}
ROOFTILE_TILE void widen(const std::uint16_t* p, Vec<std::int32_t>& v) {
  v = __builtin_convertvector((load_unaligned<Narrow<std::uint16_t, std::int32_t>>(p)), Vec<std::int32_t>);
}
ROOFTILE_TILE void widen(const std::uint8_t* p, Vec<std::uint16_t>& v) {
  v = __builtin_convertvector((load_unaligned<Narrow<std::uint8_t, std::uint16_t>>(p)), Vec<std::uint16_t>);
}

// Lanes to elements of memory, rounded to nearest, ties to even.
ROOFTILE_TILE Vec<float> narrow(Vec<float> v, const float*) { return v; }
ROOFTILE_TILE Vec<double> narrow(Vec<double> v, const double*) { return v; }
ROOFTILE_TILE Vec<std::int32_t> narrow(Vec<std::int32_t> v, const std::int32_t*) { return v; }
ROOFTILE_TILE Narrow<float, double> narrow(Vec<double> v, const float*) {
  return __builtin_convertvector(v, Narrow<float, double>);
}
ROOFTILE_TILE Narrow<std::uint16_t, float> narrow(Vec<float> v, const bf16*) {
  const Vec<std::uint32_t> bits = (Vec<std::uint32_t>)v;
  const Vec<std::uint32_t> rounded = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
  const Vec<std::uint32_t> nan = (Vec<std::uint32_t>)(v != v);
  return __builtin_convertvector((nan & 0x7fc0) | (~nan & rounded), Narrow<std::uint16_t, float>);
}
ROOFTILE_TILE Narrow<std::uint16_t, float> narrow(Vec<float> v, const f16*) {
  const Vec<std::uint32_t> bits = (Vec<std::uint32_t>)v;
  const Vec<std::uint32_t> sign = (bits >> 16) & 0x8000;
  const Vec<std::uint32_t> magnitude = bits & 0x7fffffff;
  // Normal results: rebias, then round by the bit behind the last one. Subnormal ones: adding 0.5 lines the
  // bits up at 2^-24, and the addition rounds.
  const Vec<std::uint32_t> normal = (magnitude - 0x38000000 + 0xfff + ((magnitude >> 13) & 1)) >> 13;
  const Vec<std::uint32_t> small = (Vec<std::uint32_t>)((Vec<float>)magnitude + 0.5f) - 0x3f000000;
  const Vec<std::uint32_t> is_small = (Vec<std::uint32_t>)((Vec<std::int32_t>)magnitude < 0x38800000);
  const Vec<std::uint32_t> is_large = (Vec<std::uint32_t>)((Vec<std::int32_t>)magnitude >= 0x47800000);
  const Vec<std::uint32_t> is_nan = (Vec<std::uint32_t>)((Vec<std::int32_t>)magnitude > 0x7f800000);
  const Vec<std::uint32_t> finite = (is_small & small) | (~is_small & normal);
  const Vec<std::uint32_t> result = (is_large & 0x7c00) | (is_nan & 0x0200) | (~is_large & finite);
  return __builtin_convertvector(sign | result, Narrow<std::uint16_t, float>);
}

// Past the caches; p is aligned to the size of the vector.
template <class N>
ROOFTILE_TILE void stream(void* p, N v) {
#if defined(__x86_64__)
  if constexpr (sizeof v == 16) {
    _mm_stream_si128((__m128i*)p, (__m128i)v);
  } else if constexpr (sizeof v == 8) {
    long long word;
    std::memcpy(&word, &v, 8);
    _mm_stream_si64((long long*)p, word);
  } else {
    store_unaligned(p, v);
  }
#else
  store_unaligned(p, v);
#endif
}
ROOFTILE_TILE void stream_fence() {
#if defined(__x86_64__)
  _mm_sfence();
#endif
}

/// 16 interleaved triples of bytes, each in the lower three of its own lane's four (lowest first: x86's and
/// ARM's order).
ROOFTILE_TILE void load_triples(const std::uint8_t* p, Vec<std::int32_t> (&v)[4]) {
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i, p += 12) {
    std::int32_t d[4];  // whole dwords; the last one begins a byte early, to end with the triples
    for (int k = 0; k < 3; ++k) std::memcpy(d + k, p + 3 * k, 4);
    std::memcpy(d + 3, p + 8, 4);
    v[i] = Vec<std::int32_t>{d[0], d[1], d[2], d[3] >> 8};
  }
}
/// Of each lane: lower half times lower half plus upper half times upper half, all signed.
ROOFTILE_TILE Vec<std::int32_t> multiply_pairs(Vec<std::int32_t> a, Vec<std::int32_t> b) {
#if defined(__x86_64__)
  return (Vec<std::int32_t>)_mm_madd_epi16((__m128i)a, (__m128i)b);
#else
  return (a << 16 >> 16) * (b << 16 >> 16) + (a >> 16) * (b >> 16);
#endif
}
/// Lanes from 0 to 255 as one vector of bytes.
ROOFTILE_TILE Vec<std::uint8_t> narrow_all(const Vec<std::int32_t> (&v)[4]) {
#if defined(__x86_64__)
  return (Vec<std::uint8_t>)_mm_packus_epi16(_mm_packs_epi32((__m128i)v[0], (__m128i)v[1]),
                                             _mm_packs_epi32((__m128i)v[2], (__m128i)v[3]));
#else
  Vec<std::uint8_t> r;
  for (int k = 0; k < 16; ++k) r[k] = static_cast<std::uint8_t>(v[k / 4][k % 4]);
  return r;
#endif
}

}  // namespace baseline
}  // namespace rooftile::tile
