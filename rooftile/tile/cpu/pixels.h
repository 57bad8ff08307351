#pragma once
// Pixels: three channels of bytes, side by side (red, green and blue) or apart. A kernel gets a chunk of them
// at a time, and asks for a channel's plane or for a weighted sum of the three.
#include "rooftile/tile/cpu/tile.h"

namespace rooftile::tile {
inline namespace ROOFTILE_ISA {

/// `size` pixels from `data` on, `stride` bytes apart, their channels `channel` bytes apart. `ahead`: pixels
/// from one that is being read to one that will be needed soon; 0: none.
struct Pixels {
  const std::uint8_t* data;
  std::int64_t size;
  std::int64_t stride = 3;
  std::int64_t channel = 1;
  std::int64_t ahead = 0;

  /// Up to `count` pixels from `begin` on.
  ROOFTILE_TILE Pixels part(std::int64_t begin, std::int64_t count) const {
    return {data + begin * stride, size - begin < count ? size - begin : count, stride, channel, ahead};
  }
};

/// A chunk of pixels, one to a lane: its lower three bytes are the channels, the fourth may be anything.
struct PixelTile {
  Vec<std::int32_t> v[kVectors];
};
inline constexpr int kPixelLanes = kLanes<std::int32_t>;

/// One channel, as integers from 0 to 255.
template <int kChannel>
ROOFTILE_TILE Tile<std::int32_t> plane(const PixelTile& pixels) {
  static_assert(0 <= kChannel && kChannel < 3, "rooftile::tile::plane: a pixel has channels 0, 1 and 2");
  Tile<std::int32_t> r;
  ROOFTILE_EACH_VECTOR(r.v[i] = (pixels.v[i] >> (8 * kChannel)) & 255);
  return r;
}

/// a · channel 0 + b · channel 1 + c · channel 2, exactly; weights from -2^15 to 2^15 - 1.
ROOFTILE_TILE Tile<std::int32_t> weigh(const PixelTile& pixels, int a, int b, int c) {
  const Vec<std::int32_t> outer =
      splat(static_cast<std::int32_t>((a & 0xffff) | static_cast<unsigned>(c) << 16));
  const Vec<std::int32_t> inner = splat(b & 0xffff);
  Tile<std::int32_t> r;
  ROOFTILE_EACH_VECTOR(const Vec<std::int32_t> first_and_third = pixels.v[i] & 0x00ff00ff;
                       const Vec<std::int32_t> second =
                           (Vec<std::int32_t>)((Vec<std::uint16_t>)pixels.v[i] >> 8);
                       r.v[i] = multiply_pairs(first_and_third, outer) + multiply_pairs(second, inner));
  return r;
}

/// a · b for a from 0 to 2^15 - 1 and b from -2^15 to 2^15 - 1: one operation everywhere, where a product of
/// any 32-bit numbers takes two on Intel's CPUs and six on SSE2 (a gray picture in the cache: 18 instead of
/// 32 ns for 64 pixels).
ROOFTILE_TILE Tile<std::int32_t> multiply_short(Tile<std::int32_t> a, int b) {
  ROOFTILE_EACH_VECTOR(a.v[i] = multiply_pairs(a.v[i], splat(b & 0xffff)));
  return a;
}

/// The pixels from `first` on: kPixelLanes of them, or `live` where kFull is false. Packed ones (stride 3)
/// and padded ones (stride 4, as RGBA) come by whole vectors.
template <bool kFull>
ROOFTILE_TILE PixelTile load_pixels(const Pixels& x, std::int64_t first, int live) {
  PixelTile r;
  const std::uint8_t* p = x.data + first * x.stride;
  if (x.channel == 1 && x.stride == 3) {
    if constexpr (kFull) {
      load_triples(p, r.v);
    } else {
      std::uint8_t triples[3 * kPixelLanes] = {};
      std::memcpy(triples, p, 3 * static_cast<std::size_t>(live));
      load_triples(triples, r.v);
    }
    return r;
  }
  // The byte behind the last pixel's channels is not ours to read.
  std::uint8_t bytes[4 * kPixelLanes];
  if (!kFull || x.channel != 1 || x.stride != 4 || first + kPixelLanes == x.size) {
    std::memset(bytes, 0, sizeof bytes);
    for (int k = 0; k < live; ++k)
      for (int c = 0; c < 3; ++c) bytes[4 * k + c] = p[k * x.stride + c * x.channel];
    p = bytes;
  }
  ROOFTILE_EACH_VECTOR(r.v[i] = load_unaligned<Vec<std::int32_t>>(p + 4 * i * kVecLanes<std::int32_t>));
  return r;
}

}  // namespace ROOFTILE_ISA
}  // namespace rooftile::tile
