#pragma once
// Codes of a cache as numbers of T, eight at a time. Every code is a number of f16, and of bf16.
#include "rooftile/ops/attention/attention.mma.h"
#include "rooftile/ops/gemm_scaled/gemm_scaled.gpu.h"

namespace rooftile::attention_gpu {

// [numbers]
/// Two codes in the lower 16 bits.
template <class T>
ROOFTILE_TILE unsigned numbers_of(unsigned pair, bool large) {
  const unsigned halves = scaled_gpu::halves_of(pair, large);
  if constexpr (std::is_same_v<T, f16>) return halves;
  __half2 both;
  memcpy(&both, &halves, 4);
  const float2 numbers = __half22float2(both);
  return pair_of<T>(numbers.x, numbers.y);
}
template <class T>
ROOFTILE_TILE uint4 numbers_of(uint2 codes, bool large) {
  return {numbers_of<T>(codes.x & 0xFFFF, large), numbers_of<T>(codes.x >> 16, large),
          numbers_of<T>(codes.y & 0xFFFF, large), numbers_of<T>(codes.y >> 16, large)};
}
// [/numbers]
/// Eight codes that begin anywhere and lie apart; zeros past the `live`-th.
ROOFTILE_TILE uint2 gather_codes(const std::uint8_t* from, std::int64_t stride, int live) {
  uint2 codes{0, 0};
  ROOFTILE_UNROLL_BY(1) for (int i = 7; i >= 0; --i) {
    const unsigned code = i < live ? from[i * stride] : 0;
    codes.y = codes.y << 8 | codes.x >> 24;
    codes.x = codes.x << 8 | code;
  }
  return codes;
}

}  // namespace rooftile::attention_gpu
