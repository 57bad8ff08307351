#pragma once
// AVX-512 (F, BW, CD, DQ, VL): 16 floats a vector, masked loads and stores.
#include <immintrin.h>

#include "rooftile/tile/cpu/vector.h"

namespace rooftile::tile {
inline namespace avx512 {

inline constexpr bool kHasMaskedLoads = true;
inline constexpr bool kHasStreaming = true;
inline constexpr bool kHasLookup = true;
inline constexpr bool kHasLookup16 = true;

// Arithmetic that GNU vectors lack. Where one operand is NaN, max and min give the second.
ROOFTILE_TILE Vec<float> vmax(Vec<float> a, Vec<float> b) {
  return (Vec<float>)_mm512_max_ps((__m512)a, (__m512)b);
}
ROOFTILE_TILE Vec<float> vmin(Vec<float> a, Vec<float> b) {
  return (Vec<float>)_mm512_min_ps((__m512)a, (__m512)b);
}
ROOFTILE_TILE Vec<double> vmax(Vec<double> a, Vec<double> b) {
  return (Vec<double>)_mm512_max_pd((__m512d)a, (__m512d)b);
}
ROOFTILE_TILE Vec<double> vmin(Vec<double> a, Vec<double> b) {
  return (Vec<double>)_mm512_min_pd((__m512d)a, (__m512d)b);
}
ROOFTILE_TILE Vec<float> vsqrt(Vec<float> a) { return (Vec<float>)_mm512_sqrt_ps((__m512)a); }
ROOFTILE_TILE Vec<double> vsqrt(Vec<double> a) { return (Vec<double>)_mm512_sqrt_pd((__m512d)a); }
ROOFTILE_TILE Vec<float> vfma(Vec<float> a, Vec<float> b, Vec<float> c) {
  return (Vec<float>)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
}
ROOFTILE_TILE Vec<double> vfma(Vec<double> a, Vec<double> b, Vec<double> c) {
  return (Vec<double>)_mm512_fmadd_pd((__m512d)a, (__m512d)b, (__m512d)c);
}
/// p · 2^n, rounded once; n is a whole number and saturates.
ROOFTILE_TILE Vec<float> vscale(Vec<float> p, Vec<float> n) {
  return (Vec<float>)_mm512_scalef_ps((__m512)p, (__m512)n);
}

/// The lanes' lower halves multiplied, to all 64 bits.
ROOFTILE_TILE Vec<std::uint64_t> vmul_low(Vec<std::uint64_t> a, Vec<std::uint64_t> b) {
  return (Vec<std::uint64_t>)_mm512_mul_epu32((__m512i)a, (__m512i)b);
}

/// table[index mod 32] for each lane: two registers serve as the table.
ROOFTILE_TILE Vec<float> vlookup(const float (&table)[32], Vec<std::int32_t> index) {
  return (Vec<float>)_mm512_permutex2var_ps(_mm512_loadu_ps(table), (__m512i)index,
                                            _mm512_loadu_ps(table + 16));
}
/// The same of a table in one register, index mod 16.
ROOFTILE_TILE Vec<float> vlookup16(const float (&table)[16], Vec<std::int32_t> index) {
  return (Vec<float>)_mm512_permutexvar_ps((__m512i)index, _mm512_loadu_ps(table));
}

// Elements of memory to lanes.
ROOFTILE_TILE void widen(const float* p, Vec<float>& v) { v = load_unaligned<Vec<float>>(p); }
ROOFTILE_TILE void widen(const double* p, Vec<double>& v) { v = load_unaligned<Vec<double>>(p); }
ROOFTILE_TILE void widen(const float* p, Vec<double>& v) {
  v = (Vec<double>)_mm512_cvtps_pd(_mm256_loadu_ps(p));
}
ROOFTILE_TILE void widen(const bf16* p, Vec<float>& v) {
  v = (Vec<float>)_mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i*)p)), 16);
}
/// Places of elements for pairs of vectors.
struct alignas(64) Pairs {
  std::uint16_t lower[32], upper[32], even[32], odd[32];
};
inline constexpr Pairs kPairs = [] {
  Pairs p{};
  for (int i = 0; i < 32; ++i) {
    p.lower[i] = std::uint16_t(i / 2);
    p.upper[i] = std::uint16_t(16 + i / 2);
    p.even[i] = std::uint16_t(2 * i);
    p.odd[i] = std::uint16_t(2 * i + 1);
  }
  return p;
}();

/// 32 at once: one permutation puts a vector's elements into the upper halves of its lanes.
ROOFTILE_TILE void widen_pair(const bf16* p, Vec<float>& a, Vec<float>& b) {
  const __m512i lower = _mm512_load_si512(kPairs.lower), upper = _mm512_load_si512(kPairs.upper);
  const __m512i both = _mm512_loadu_si512(p);
  a = (Vec<float>)_mm512_maskz_permutexvar_epi16(0xaaaaaaaa, lower, both);
  b = (Vec<float>)_mm512_maskz_permutexvar_epi16(0xaaaaaaaa, upper, both);
}
ROOFTILE_TILE void widen(const f16* p, Vec<float>& v) {
  v = (Vec<float>)_mm512_cvtph_ps(_mm256_loadu_si256((const __m256i*)p));
}
ROOFTILE_TILE void widen(const std::int32_t* p, Vec<std::int32_t>& v) {
  v = load_unaligned<Vec<std::int32_t>>(p);
}
ROOFTILE_TILE void widen(const std::uint8_t* p, Vec<std::int32_t>& v) {
  v = (Vec<std::int32_t>)_mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i*)p));
}
ROOFTILE_TILE void widen(const std::uint16_t* p, Vec<std::int32_t>& v) {
  v = (Vec<std::int32_t>)_mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i*)p));
}
ROOFTILE_TILE void widen(const std::uint8_t* p, Vec<std::uint16_t>& v) {
  v = (Vec<std::uint16_t>)_mm512_cvtepu8_epi16(_mm256_loadu_si256((const __m256i*)p));
}

// The first `live` lanes; nothing past them is touched.
ROOFTILE_TILE __mmask16 first_lanes(int live) { return (__mmask16)_bzhi_u32(0xffff, (unsigned)live); }
ROOFTILE_TILE void widen_tail(const float* p, int live, float other, Vec<float>& v) {
  v = (Vec<float>)_mm512_mask_loadu_ps(_mm512_set1_ps(other), first_lanes(live), p);
}
ROOFTILE_TILE void widen_tail(const double* p, int live, double other, Vec<double>& v) {
  v = (Vec<double>)_mm512_mask_loadu_pd(_mm512_set1_pd(other), (__mmask8)first_lanes(live), p);
}
ROOFTILE_TILE void widen_tail(const float* p, int live, double other, Vec<double>& v) {
  const __mmask8 mask = (__mmask8)first_lanes(live);
  v = (Vec<double>)_mm512_mask_cvtps_pd(_mm512_set1_pd(other), mask, _mm256_maskz_loadu_ps(mask, p));
}
ROOFTILE_TILE void widen_tail(const bf16* p, int live, float other, Vec<float>& v) {
  const __mmask16 mask = first_lanes(live);
  const __m512i bits = _mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(mask, p)), 16);
  v = (Vec<float>)_mm512_mask_mov_ps(_mm512_set1_ps(other), mask, (__m512)bits);
}
ROOFTILE_TILE void widen_tail(const f16* p, int live, float other, Vec<float>& v) {
  const __mmask16 mask = first_lanes(live);
  v = (Vec<float>)_mm512_mask_cvtph_ps(_mm512_set1_ps(other), mask, _mm256_maskz_loadu_epi16(mask, p));
}
ROOFTILE_TILE void widen_tail(const std::int32_t* p, int live, std::int32_t other, Vec<std::int32_t>& v) {
  v = (Vec<std::int32_t>)_mm512_mask_loadu_epi32(_mm512_set1_epi32(other), first_lanes(live), p);
}
ROOFTILE_TILE void widen_tail(const std::uint8_t* p, int live, std::int32_t other, Vec<std::int32_t>& v) {
  const __mmask16 mask = first_lanes(live);
  v = (Vec<std::int32_t>)_mm512_mask_cvtepu8_epi32(_mm512_set1_epi32(other), mask,
                                                   _mm_maskz_loadu_epi8(mask, p));
}

// Lanes to elements of memory, rounded to nearest, ties to even. Not vcvtneps2pbh: it flushes subnormals.
ROOFTILE_TILE Vec<float> narrow(Vec<float> v, const float*) { return v; }
ROOFTILE_TILE Vec<double> narrow(Vec<double> v, const double*) { return v; }
ROOFTILE_TILE Vec<std::int32_t> narrow(Vec<std::int32_t> v, const std::int32_t*) { return v; }
ROOFTILE_TILE __m256 narrow(Vec<double> v, const float*) { return _mm512_cvtpd_ps((__m512d)v); }
ROOFTILE_TILE __m256i narrow(Vec<float> v, const f16*) {
  return _mm512_cvtps_ph((__m512)v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
ROOFTILE_TILE __m256i narrow(Vec<float> v, const bf16*) {
  const __m512i bits = (__m512i)v;
  const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
  const __m512i rounded = _mm512_add_epi32(bits, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff)));
  const __mmask16 number = _mm512_cmp_ps_mask((__m512)v, (__m512)v, _CMP_ORD_Q);
  return _mm512_cvtepi32_epi16(_mm512_mask_srli_epi32(_mm512_set1_epi32(0x7fc0), number, rounded, 16));
}
/// Two vectors at once: 11 operations where one at a time takes 18 (add of bf16 in the second cache: 0.41 of
/// a copy one at a time, 0.60 in pairs; Zen 4).
ROOFTILE_TILE __m512i narrow_pair(Vec<float> a, Vec<float> b) {
  const __m512i one = _mm512_set1_epi16(1);
  const __m512i low = _mm512_permutex2var_epi16((__m512i)a, _mm512_load_si512(kPairs.even), (__m512i)b);
  const __m512i high = _mm512_permutex2var_epi16((__m512i)a, _mm512_load_si512(kPairs.odd), (__m512i)b);
  // Up where more than half is cut off, or half of it from an odd number.
  const __m512i least = _mm512_sub_epi16(_mm512_set1_epi16(-0x8000), _mm512_and_si512(high, one));
  const __mmask32 up = _mm512_cmpgt_epu16_mask(low, least);
  const __mmask32 nan = _mm512_kunpackw(_mm512_cmp_ps_mask((__m512)b, (__m512)b, _CMP_UNORD_Q),
                                        _mm512_cmp_ps_mask((__m512)a, (__m512)a, _CMP_UNORD_Q));
  return _mm512_mask_mov_epi16(_mm512_mask_add_epi16(high, up, high, one), nan, _mm512_set1_epi16(0x7fc0));
}
/// The low byte of each lane.
ROOFTILE_TILE __m128i narrow(Vec<std::int32_t> v, const std::uint8_t*) {
  return _mm512_cvtepi32_epi8((__m512i)v);
}

ROOFTILE_TILE void put_tail(float* p, int live, Vec<float> v) {
  _mm512_mask_storeu_ps(p, first_lanes(live), (__m512)v);
}
ROOFTILE_TILE void put_tail(double* p, int live, Vec<double> v) {
  _mm512_mask_storeu_pd(p, (__mmask8)first_lanes(live), (__m512d)v);
}
ROOFTILE_TILE void put_tail(std::int32_t* p, int live, Vec<std::int32_t> v) {
  _mm512_mask_storeu_epi32(p, first_lanes(live), (__m512i)v);
}
ROOFTILE_TILE void put_tail(float* p, int live, Vec<double> v) {
  _mm256_mask_storeu_ps(p, (__mmask8)first_lanes(live), narrow(v, p));
}
ROOFTILE_TILE void put_tail(bf16* p, int live, Vec<float> v) {
  _mm256_mask_storeu_epi16(p, first_lanes(live), narrow(v, p));
}
ROOFTILE_TILE void put_tail(f16* p, int live, Vec<float> v) {
  _mm256_mask_storeu_epi16(p, first_lanes(live), narrow(v, p));
}
ROOFTILE_TILE void put_tail(std::uint8_t* p, int live, Vec<std::int32_t> v) {
  _mm_mask_storeu_epi8(p, first_lanes(live), narrow(v, p));
}

// Past the caches; p is aligned to the size of the vector.
template <class N>
ROOFTILE_TILE void stream(void* p, N v) {
  if constexpr (sizeof v == 64) {
    _mm512_stream_si512((__m512i*)p, (__m512i)v);
  } else if constexpr (sizeof v == 32) {
    _mm256_stream_si256((__m256i*)p, (__m256i)v);
  } else {
    _mm_stream_si128((__m128i*)p, (__m128i)v);
  }
}
ROOFTILE_TILE void stream_fence() { _mm_sfence(); }

/// 64 interleaved triples of bytes, each in the lower three of its own lane's four.
ROOFTILE_TILE void load_triples(const std::uint8_t* p, Vec<std::int32_t> (&v)[4]) {
  // 48 bytes hold what a vector needs. Read as a masked load they never train the CPU's prefetcher (a cold
  // picture took 4.0 instead of 0.76 ms on Zen 5), so read 64; the last vector's begin 16 earlier, to end
  // with the triples.
  const __m512i first = _mm512_setr_epi32(0, 1, 2, 0, 3, 4, 5, 3, 6, 7, 8, 6, 9, 10, 11, 9);
  const __m512i last = _mm512_add_epi32(first, _mm512_set1_epi32(4));
  const __m512i order =
      _mm512_broadcast_i32x4(_mm_setr_epi8(0, 1, 2, -1, 3, 4, 5, -1, 6, 7, 8, -1, 9, 10, 11, -1));
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    const __m512i bytes = _mm512_loadu_si512(p + (i < 3 ? 48 * i : 128));
    v[i] =
        (Vec<std::int32_t>)_mm512_shuffle_epi8(_mm512_permutexvar_epi32(i < 3 ? first : last, bytes), order);
  }
}
/// Of each lane: lower half times lower half plus upper half times upper half, all signed.
ROOFTILE_TILE Vec<std::int32_t> multiply_pairs(Vec<std::int32_t> a, Vec<std::int32_t> b) {
  return (Vec<std::int32_t>)_mm512_madd_epi16((__m512i)a, (__m512i)b);
}
/// Lanes from 0 to 255 as one vector of bytes.
ROOFTILE_TILE Vec<std::uint8_t> narrow_all(const Vec<std::int32_t> (&v)[4]) {
  // Packing keeps to 128-bit lanes; a permutation of dwords at the end puts the four vectors' shares in
  // order.
  const __m512i low = _mm512_packus_epi32((__m512i)v[0], (__m512i)v[1]);
  const __m512i high = _mm512_packus_epi32((__m512i)v[2], (__m512i)v[3]);
  return (Vec<std::uint8_t>)_mm512_permutexvar_epi32(
      _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15),
      _mm512_packus_epi16(low, high));
}

}  // namespace avx512
}  // namespace rooftile::tile
