// Pictures and filters whose channels lie apart (NCHW), copied to where they lie next to each other: tiles of
// 64 pixels by 128 bytes of channels through shared memory, read along pixels, written along channels.
#include <algorithm>

#include "rooftile/ops/conv2d/conv2d.gpu.h"

namespace rooftile::conv_gpu {
namespace {

constexpr int kSide = 64;           // pixels of a tile
constexpr int kWords = 32;          // and words of their channels: two of 16 bits, or one of 32
constexpr int kPitch = kWords + 1;  // odd: no bank conflict along pixels
constexpr int kBlocks = 4;          // of a multiprocessor
constexpr int kRounds = kSide * kWords / 4 / kThreads;

struct ChannelPack {
  const std::byte* from;
  std::byte* to;
  std::int64_t n, c, h, w;  ///< strides of `from`, in elements
  std::int64_t width, pixels, words, tiles_p, tiles_c, tiles;
  bool in_line;  ///< pixels have one stride
  bool fours;    ///< four neighbouring pixels are an aligned vector
};

ChannelPack pack_of(const ConvPack& p, int size) {
  const Windows &v = p.from, &to = p.to;
  ChannelPack r{};
  r.from = static_cast<const std::byte*>(v.data);
  r.to = static_cast<std::byte*>(const_cast<void*>(to.data));
  r.n = v.n, r.c = v.c, r.h = v.h, r.w = v.w;
  r.width = v.width, r.pixels = v.height * v.width, r.words = v.channels * size / 4;
  r.tiles_p = (r.pixels + kSide - 1) / kSide, r.tiles_c = (r.words + kWords - 1) / kWords;
  r.tiles = v.images * r.tiles_p * r.tiles_c;
  r.in_line = v.height == 1 || v.width == 1 || v.h == v.width * v.w;
  if (v.width == 1) r.w = v.h;
  const auto address = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(v.data));
  r.fours = r.in_line && r.w == 1 && r.pixels % 4 == 0 && (v.n | v.c) % 4 == 0 && address % (4 * size) == 0;
  return r;
}

/// Four pixels from `pixel` on of a channel; Vector: uint2 or uint4.
template <class Vector>
ROOFTILE_TILE Vector four_pixels(const ChannelPack& p, std::int64_t image, std::int64_t channel,
                                 std::int64_t pixel) {
  using Element = std::conditional_t<sizeof(Vector) == 8, std::uint16_t, std::uint32_t>;
  const Element* const from = reinterpret_cast<const Element*>(p.from) + image * p.n + channel * p.c;
  Vector v{};
  if (p.fours) {
    if (pixel < p.pixels) v = *reinterpret_cast<const Vector*>(from + pixel);
    return v;
  }
  Element each[4] = {};
  ROOFTILE_UNROLL for (int l = 0; l < 4; ++l) {
    const std::int64_t at = pixel + l;
    if (at >= p.pixels) break;
    const std::int64_t row = p.in_line ? 0 : quotient(at, p.width);
    each[l] = from[row * p.h + (at - row * p.width) * p.w];
  }
  memcpy(&v, each, sizeof v);
  return v;
}

template <int kSize>
ROOFTILE_TILE void pack_tile(const ChannelPack& p, std::int64_t index, unsigned* words) {
  const std::int64_t down = quotient(index, p.tiles_c), image = quotient(down, p.tiles_p);
  const std::int64_t first_word = (index - down * p.tiles_c) * kWords,
                     first_pixel = (down - image * p.tiles_p) * kSide;
  const int t = static_cast<int>(threadIdx.x);
  uint4 read[kRounds] = {};  // a word of four pixels
  ROOFTILE_UNROLL for (int i = 0; i < kRounds; ++i) {
    const std::int64_t word = first_word + t / 16 + i * (kThreads / 16), pixel = first_pixel + t % 16 * 4;
    if (word >= p.words) continue;
    if constexpr (kSize == 4) {
      read[i] = four_pixels<uint4>(p, image, word, pixel);
    } else {
      const uint2 low = four_pixels<uint2>(p, image, 2 * word, pixel),
                  high = four_pixels<uint2>(p, image, 2 * word + 1, pixel);
      read[i] = {__byte_perm(low.x, high.x, 0x5410), __byte_perm(low.x, high.x, 0x7632),
                 __byte_perm(low.y, high.y, 0x5410), __byte_perm(low.y, high.y, 0x7632)};
    }
  }
  ROOFTILE_UNROLL for (int i = 0; i < kRounds; ++i) {
    unsigned* const to = words + t % 16 * 4 * kPitch + t / 16 + i * (kThreads / 16);
    to[0] = read[i].x, to[kPitch] = read[i].y, to[2 * kPitch] = read[i].z, to[3 * kPitch] = read[i].w;
  }
  __syncthreads();
  ROOFTILE_UNROLL for (int i = 0; i < kRounds; ++i) {
    const int row = t / 8 + i * (kThreads / 8), vector = t % 8 * 4;
    const std::int64_t pixel = first_pixel + row, word = first_word + vector;
    if (pixel >= p.pixels || word >= p.words) continue;
    const unsigned* const from = words + row * kPitch + vector;
    const uint4 four{from[0], from[1], from[2], from[3]};
    *reinterpret_cast<uint4*>(p.to + ((image * p.pixels + pixel) * p.words + word) * 4) = four;
  }
  __syncthreads();
}

template <int kSize>
__global__ void __launch_bounds__(kThreads, kBlocks)
    conv_pack(const __grid_constant__ ChannelPack first, const __grid_constant__ ChannelPack second) {
  ROOFTILE_SHARED(words, unsigned[kSide * kPitch]);
#if defined(ROOFTILE_HAS_SM90)
  rooftile::cuda::let_next_start();
#endif
  for (std::int64_t t = blockIdx.x; t < first.tiles + second.tiles; t += gridDim.x)
    pack_tile<kSize>(t < first.tiles ? first : second, t < first.tiles ? t : t - first.tiles, &words[0]);
}

}  // namespace

Status pack_channels(const CudaLaunch& launch, const ConvProblem& p) {
  if (p.pack_count == 0) return {};
  const int size = bits(p.dtype) / 8;
  const ChannelPack first = pack_of(p.packs[0], size),
                    second = p.pack_count > 1 ? pack_of(p.packs[1], size) : ChannelPack{};
  const std::int64_t blocks =
      std::min<std::int64_t>(first.tiles + second.tiles, kBlocks * launch.multiprocessors);
  return rooftile::cuda::launch(launch, "conv2d", {static_cast<unsigned>(blocks), kThreads},
                                size == 4 ? conv_pack<4> : conv_pack<2>, first, second);
}

}  // namespace rooftile::conv_gpu
