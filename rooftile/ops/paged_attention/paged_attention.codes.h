#pragma once
// Codes of a cache on their way to a tile of attention.mma.h: eight at a time from memory to a thread's
// registers, where they wait, and as T to shared memory. Every code is a number of f16, and of bf16.
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

/// A thread's codes of a tile's keys or values, placed as copy_rows places elements.
template <class T, class Shape>
struct CodesAhead {
  static constexpr bool kAny = true;
  static constexpr int kWords = Shape::kWords, kStep = Shape::kThreads / kWords, kEach = Shape::kKeys / kStep;
  uint2 codes[kEach];

  ROOFTILE_TILE static int row_of(int i) { return static_cast<int>(threadIdx.x) / kWords + i * kStep; }
  ROOFTILE_TILE static int word() { return static_cast<int>(threadIdx.x) % kWords; }

  /// `words`: rows are whole words of 8 codes.
  template <class From>
  ROOFTILE_TILE void load(const From& from, std::int64_t first, std::int64_t live, int size, bool words) {
    const int channels = size - word() * 8;
    const std::uint8_t* its[kEach];  // pages are looked up side by side
    ROOFTILE_UNROLL for (int i = 0; i < kEach; ++i) {
      const bool any = row_of(i) < live && channels > 0;
      const unsigned other = any && from.missing() != 0 ? 0x7F7F7F7Fu : 0;  // NaN in both formats
      codes[i] = {other, other};
      its[i] = any ? from.row(first + row_of(i)) : nullptr;
    }
    if (words) {
      ROOFTILE_UNROLL for (int i = 0; i < kEach; ++i) {
        if (its[i]) codes[i] = *reinterpret_cast<const uint2*>(its[i] + word() * 8);
      }
    } else {
      ROOFTILE_UNROLL for (int i = 0; i < kEach; ++i) {
        if (its[i]) codes[i] = gather_codes(its[i] + word() * 8 * from.stride, from.stride, channels);
      }
    }
  }
  template <class From>
  ROOFTILE_TILE void store(std::byte* to, const From& from, int size) const {
    if (word() * 8 >= (size + 15) / 16 * 16) return;
    const auto put = [&](bool large) {  // a constant each time: one branch, not one for each pair
      ROOFTILE_UNROLL for (int i = 0; i < kEach; ++i) {
        const int row = row_of(i);
        *reinterpret_cast<uint4*>(to + row * Shape::kRow + ((word() ^ row % 8) * 16)) =
            numbers_of<T>(codes[i], large);
      }
    };
    from.large() ? put(true) : put(false);
  }
};

}  // namespace rooftile::attention_gpu
