#pragma once
// AVX2 with FMA and F16C: 8 floats a vector; tails go through a small buffer.
#include <immintrin.h>

#include "rooftile/tile/cpu/vector.h"

namespace rooftile::tile {
inline namespace avx2 {

inline constexpr bool kHasMaskedLoads = false;
inline constexpr bool kHasLookup = false;
inline constexpr bool kHasLookup16 = true;
inline constexpr bool kHasStreaming = true;

// Arithmetic that GNU vectors lack. Where one operand is NaN, max and min give the second.
ROOFTILE_TILE Vec<float> vmax(Vec<float> a, Vec<float> b) {
  return (Vec<float>)_mm256_max_ps((__m256)a, (__m256)b);
}
ROOFTILE_TILE Vec<float> vmin(Vec<float> a, Vec<float> b) {
  return (Vec<float>)_mm256_min_ps((__m256)a, (__m256)b);
}
ROOFTILE_TILE Vec<double> vmax(Vec<double> a, Vec<double> b) {
  return (Vec<double>)_mm256_max_pd((__m256d)a, (__m256d)b);
}
ROOFTILE_TILE Vec<double> vmin(Vec<double> a, Vec<double> b) {
  return (Vec<double>)_mm256_min_pd((__m256d)a, (__m256d)b);
}
ROOFTILE_TILE Vec<float> vsqrt(Vec<float> a) { return (Vec<float>)_mm256_sqrt_ps((__m256)a); }
ROOFTILE_TILE Vec<double> vsqrt(Vec<double> a) { return (Vec<double>)_mm256_sqrt_pd((__m256d)a); }
ROOFTILE_TILE Vec<float> vfma(Vec<float> a, Vec<float> b, Vec<float> c) {
  return (Vec<float>)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
}
ROOFTILE_TILE Vec<double> vfma(Vec<double> a, Vec<double> b, Vec<double> c) {
  return (Vec<double>)_mm256_fmadd_pd((__m256d)a, (__m256d)b, (__m256d)c);
}
/// p · 2^n for whole n of magnitude up to 252: two steps, because 2^n itself may not be a normal number.
ROOFTILE_TILE Vec<float> vscale(Vec<float> p, Vec<float> n) {
  const __m256i whole = _mm256_cvtps_epi32((__m256)n);
  const __m256i half = _mm256_srai_epi32(whole, 1);
  const __m256i bias = _mm256_set1_epi32(127);
  const __m256 first = (__m256)_mm256_slli_epi32(_mm256_add_epi32(half, bias), 23);
  const __m256 second = (__m256)_mm256_slli_epi32(_mm256_add_epi32(_mm256_sub_epi32(whole, half), bias), 23);
  return (Vec<float>)_mm256_mul_ps(_mm256_mul_ps((__m256)p, first), second);
}

/// The lanes' lower halves multiplied, to all 64 bits.
ROOFTILE_TILE Vec<std::uint64_t> vmul_low(Vec<std::uint64_t> a, Vec<std::uint64_t> b) {
  return (Vec<std::uint64_t>)_mm256_mul_epu32((__m256i)a, (__m256i)b);
}

Vec<float> vlookup(const float (&table)[32],
                   Vec<std::int32_t> index);  // kHasLookup is false: named, never called
/// table[index mod 16] for each lane: two registers serve as the table, and bit 3 chooses.
ROOFTILE_TILE Vec<float> vlookup16(const float (&table)[16], Vec<std::int32_t> index) {
  const __m256 low = _mm256_permutevar8x32_ps(_mm256_loadu_ps(table), (__m256i)index);
  const __m256 high = _mm256_permutevar8x32_ps(_mm256_loadu_ps(table + 8), (__m256i)index);
  return (Vec<float>)_mm256_blendv_ps(low, high, (__m256)_mm256_slli_epi32((__m256i)index, 28));
}

// Elements of memory to lanes.
ROOFTILE_TILE void widen(const float* p, Vec<float>& v) { v = load_unaligned<Vec<float>>(p); }
ROOFTILE_TILE void widen(const double* p, Vec<double>& v) { v = load_unaligned<Vec<double>>(p); }
ROOFTILE_TILE void widen(const float* p, Vec<double>& v) {
  v = (Vec<double>)_mm256_cvtps_pd(_mm_loadu_ps(p));
}
ROOFTILE_TILE void widen(const bf16* p, Vec<float>& v) {
  v = (Vec<float>)_mm256_slli_epi32(_mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i*)p)), 16);
}
ROOFTILE_TILE void widen(const f16* p, Vec<float>& v) {
  v = (Vec<float>)_mm256_cvtph_ps(_mm_loadu_si128((const __m128i*)p));
}
ROOFTILE_TILE void widen(const std::int32_t* p, Vec<std::int32_t>& v) {
  v = load_unaligned<Vec<std::int32_t>>(p);
}
ROOFTILE_TILE void widen(const std::uint8_t* p, Vec<std::int32_t>& v) {
  v = (Vec<std::int32_t>)_mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i*)p));
}
ROOFTILE_TILE void widen(const std::uint16_t* p, Vec<std::int32_t>& v) {
  v = (Vec<std::int32_t>)_mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i*)p));
}
ROOFTILE_TILE void widen(const std::uint8_t* p, Vec<std::uint16_t>& v) {
  v = (Vec<std::uint16_t>)_mm256_cvtepu8_epi16(_mm_loadu_si128((const __m128i*)p));
}

// Lanes to elements of memory, rounded to nearest, ties to even.
ROOFTILE_TILE Vec<float> narrow(Vec<float> v, const float*) { return v; }
ROOFTILE_TILE Vec<double> narrow(Vec<double> v, const double*) { return v; }
ROOFTILE_TILE Vec<std::int32_t> narrow(Vec<std::int32_t> v, const std::int32_t*) { return v; }
ROOFTILE_TILE __m128 narrow(Vec<double> v, const float*) { return _mm256_cvtpd_ps((__m256d)v); }
ROOFTILE_TILE __m128i narrow(Vec<float> v, const f16*) {
  return _mm256_cvtps_ph((__m256)v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
ROOFTILE_TILE __m128i narrow(Vec<float> v, const bf16*) {
  const __m256i bits = (__m256i)v;
  const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
  const __m256i sum = _mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff)));
  const __m256i nan = (__m256i)_mm256_cmp_ps((__m256)v, (__m256)v, _CMP_UNORD_Q);
  const __m256i rounded = _mm256_blendv_epi8(_mm256_srli_epi32(sum, 16), _mm256_set1_epi32(0x7fc0), nan);
  return _mm_packus_epi32(_mm256_castsi256_si128(rounded), _mm256_extracti128_si256(rounded, 1));
}

// Past the caches; p is aligned to the size of the vector.
template <class N>
ROOFTILE_TILE void stream(void* p, N v) {
  if constexpr (sizeof v == 32) {
    _mm256_stream_si256((__m256i*)p, (__m256i)v);
  } else if constexpr (sizeof v == 16) {
    _mm_stream_si128((__m128i*)p, (__m128i)v);
  } else {
    _mm_stream_si64((long long*)p, (long long)v);
  }
}
ROOFTILE_TILE void stream_fence() { _mm_sfence(); }

/// 32 interleaved triples of bytes, each in the lower three of its own lane's four.
ROOFTILE_TILE void load_triples(const std::uint8_t* p, Vec<std::int32_t> (&v)[4]) {
  // A vector's triples 0 to 3 from byte 0 of its lower half on, 4 to 7 from byte 4 of its upper half on.
  const __m256i order = _mm256_setr_epi8(0, 1, 2, -1, 3, 4, 5, -1, 6, 7, 8, -1, 9, 10, 11, -1,  //
                                         4, 5, 6, -1, 7, 8, 9, -1, 10, 11, 12, -1, 13, 14, 15, -1);
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i, p += 24) {
    const __m256i bytes = _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_loadu_si128((const __m128i*)p)),
                                                  _mm_loadu_si128((const __m128i*)(p + 8)), 1);
    v[i] = (Vec<std::int32_t>)_mm256_shuffle_epi8(bytes, order);
  }
}
/// Of each lane: lower half times lower half plus upper half times upper half, all signed.
ROOFTILE_TILE Vec<std::int32_t> multiply_pairs(Vec<std::int32_t> a, Vec<std::int32_t> b) {
  return (Vec<std::int32_t>)_mm256_madd_epi16((__m256i)a, (__m256i)b);
}
/// Lanes from 0 to 255 as one vector of bytes.
ROOFTILE_TILE Vec<std::uint8_t> narrow_all(const Vec<std::int32_t> (&v)[4]) {
  // Packing keeps to 128-bit lanes; a permutation of dwords at the end puts the four vectors' shares in
  // order.
  const __m256i low = _mm256_packus_epi32((__m256i)v[0], (__m256i)v[1]);
  const __m256i high = _mm256_packus_epi32((__m256i)v[2], (__m256i)v[3]);
  return (Vec<std::uint8_t>)_mm256_permutevar8x32_epi32(_mm256_packus_epi16(low, high),
                                                        _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
}

}  // namespace avx2
}  // namespace rooftile::tile
