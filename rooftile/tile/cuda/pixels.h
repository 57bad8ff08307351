#pragma once
// Rows that are more than elements in memory, on a GPU: operands that read themselves, and pixels of three
// interleaved channels of 8 bits.
#include "rooftile/tile/cuda/memory.h"

namespace rooftile::tile {
inline namespace cuda {

/// A row of an operand that reads itself: load_pack<N>(first, live) is its method.
template <class Real, int N, class Operand>
struct HeldOperand {
  Operand operand;
  ROOFTILE_TILE
  Tile<Real, N> operator[](const Chunk& chunk) const {
    return widened<Real>(operand.template load_pack<N>(chunk.first, chunk.live));
  }
};

/// `size` pixels from `data` on, `stride` bytes apart, their channels `channel` bytes apart.
struct Pixels {
  const std::uint8_t* data;
  std::int64_t size;
  std::int64_t stride = 3;
  std::int64_t channel = 1;
  std::int64_t ahead = 0;  // the CPU's

  ROOFTILE_TILE
  Pixels part(std::int64_t begin, std::int64_t count) const {
    return {data + begin * stride, size - begin < count ? size - begin : count, stride, channel, ahead};
  }
};

template <int N>
struct PixelTile {
  std::int32_t channel[3][N];
};

/// Channel kChannel of each pixel.
template <int kChannel, int N>
ROOFTILE_TILE Tile<std::int32_t, N> plane(const PixelTile<N>& pixels) {
  static_assert(0 <= kChannel && kChannel < 3, "rooftile::tile::plane: a pixel has channels 0, 1 and 2");
  Tile<std::int32_t, N> r;
  ROOFTILE_EACH_LANE(N) r.v[i] = pixels.channel[kChannel][i];
  return r;
}
/// a · channel 0 + b · channel 1 + c · channel 2, exactly.
template <int N>
ROOFTILE_TILE Tile<std::int32_t, N> weigh(const PixelTile<N>& pixels, int a, int b, int c) {
  Tile<std::int32_t, N> r;
  ROOFTILE_EACH_LANE(N)
  r.v[i] = a * pixels.channel[0][i] + b * pixels.channel[1][i] + c * pixels.channel[2][i];
  return r;
}
/// a · b, for values below 2^15.
template <int N>
ROOFTILE_TILE Tile<std::int32_t, N> multiply_short(const Tile<std::int32_t, N>& a, int b) {
  return a * b;
}

/// Pixels that lie side by side are read as the bytes they are: 16 of them are three 16-byte words.
template <Access kAccess, int N>
ROOFTILE_TILE PixelTile<N> load_pixels(const Pixels& row, std::int64_t first, std::int64_t live) {
  PixelTile<N> pixels;
  if constexpr (!in_words(kAccess))
    if (row.stride != 3 || row.channel != 1) {
      ROOFTILE_EACH_LANE(N) {
        ROOFTILE_UNROLL for (int c = 0; c < 3; ++c) pixels.channel[c][i] =
            i < live ? row.data[(first + i) * row.stride + c * row.channel] : 0;
      }
      return pixels;
    }
  const Row<const std::uint8_t> bytes{row.data, 3 * row.size};
  const auto pack = load_pack<kAccess, 3 * N>(bytes, 3 * first, 3 * live, std::uint8_t{0});
  ROOFTILE_EACH_LANE(N) {
    ROOFTILE_UNROLL for (int c = 0; c < 3; ++c) pixels.channel[c][i] = pack.get(3 * i + c);
  }
  return pixels;
}
/// A row of them that is read again.
template <Access kAccess, int N>
struct HeldPixels {
  Pixels row;
  ROOFTILE_TILE
  PixelTile<N> operator[](const Chunk& chunk) const {
    return load_pixels<kAccess, N>(row, chunk.first, chunk.live);
  }
};

}  // namespace cuda
}  // namespace rooftile::tile
