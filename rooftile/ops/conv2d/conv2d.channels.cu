// Pictures and filters of 16 bits whose channels lie apart (NCHW), copied to where they lie next to each
// other: tiles of 64 pixels by 64 channels through shared memory, read along pixels, written along channels.
#include <algorithm>

#include "rooftile/ops/conv2d/conv2d.gpu.h"

namespace rooftile::conv_gpu {
namespace {

constexpr int kSide = 64;              // pixels and channels of a tile
constexpr int kPitch = kSide / 2 + 1;  // pairs of channels; odd: no bank conflict along pixels
constexpr int kBlocks = 4;             // of a multiprocessor
constexpr int kRounds = kSide * kSide / 8 / kThreads;

struct ChannelPack {
  const std::uint16_t* from;
  std::uint16_t* to;
  std::int64_t n, c, h, w;  ///< strides of `from`
  std::int64_t width, pixels, channels, tiles_p, tiles_c, tiles;
  bool fours;  ///< four neighbouring pixels are an aligned word
};

ChannelPack pack_of(const ConvPack& p) {
  const Windows &v = p.from, &to = p.to;
  ChannelPack r{};
  r.from = static_cast<const std::uint16_t*>(v.data);
  r.to = static_cast<std::uint16_t*>(const_cast<void*>(to.data));
  r.n = v.n, r.c = v.c, r.h = v.h, r.w = v.w;
  r.width = v.width, r.pixels = v.height * v.width, r.channels = v.channels;
  r.tiles_p = (r.pixels + kSide - 1) / kSide, r.tiles_c = (r.channels + kSide - 1) / kSide;
  r.tiles = v.images * r.tiles_p * r.tiles_c;
  const bool in_line = v.w == 1 && (v.height == 1 || v.h == v.width);
  const auto address = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(v.data));
  r.fours = in_line && r.pixels % 4 == 0 && (v.n | v.c) % 4 == 0 && address % 8 == 0;
  return r;
}

ROOFTILE_TILE void pack_tile(const ChannelPack& p, std::int64_t index, unsigned* pairs) {
  const std::int64_t down = quotient(index, p.tiles_c), image = quotient(down, p.tiles_p);
  const std::int64_t first_channel = (index - down * p.tiles_c) * kSide,
                     first_pixel = (down - image * p.tiles_p) * kSide;
  const int t = static_cast<int>(threadIdx.x);
  // Four pixels of two channels.
  uint2 read[kRounds][2] = {};
  ROOFTILE_UNROLL for (int i = 0; i < kRounds; ++i) {
    const std::int64_t channel = first_channel + t / 16 * 2 + i * (kThreads / 8),
                       pixel = first_pixel + t % 16 * 4;
    if (channel >= p.channels) continue;
    ROOFTILE_UNROLL for (int which = 0; which < 2; ++which) {
      const std::uint16_t* const from = p.from + image * p.n + (channel + which) * p.c;
      if (p.fours) {
        if (pixel < p.pixels) read[i][which] = *reinterpret_cast<const uint2*>(from + pixel);
        continue;
      }
      unsigned each[4] = {};
      ROOFTILE_UNROLL for (int l = 0; l < 4; ++l) {
        const std::int64_t at = pixel + l, row = quotient(at, p.width);
        if (at < p.pixels) each[l] = from[row * p.h + (at - row * p.width) * p.w];
      }
      read[i][which] = {each[0] | each[1] << 16, each[2] | each[3] << 16};
    }
  }
  ROOFTILE_UNROLL for (int i = 0; i < kRounds; ++i) {
    unsigned* const to = pairs + t % 16 * 4 * kPitch + t / 16 + i * (kThreads / 16);
    to[0] = __byte_perm(read[i][0].x, read[i][1].x, 0x5410);
    to[kPitch] = __byte_perm(read[i][0].x, read[i][1].x, 0x7632);
    to[2 * kPitch] = __byte_perm(read[i][0].y, read[i][1].y, 0x5410);
    to[3 * kPitch] = __byte_perm(read[i][0].y, read[i][1].y, 0x7632);
  }
  __syncthreads();
  ROOFTILE_UNROLL for (int i = 0; i < kRounds; ++i) {
    const int row = t / 8 + i * (kThreads / 8), vector = t % 8;
    const std::int64_t pixel = first_pixel + row, channel = first_channel + vector * 8;
    if (pixel >= p.pixels || channel >= p.channels) continue;
    const unsigned* const from = pairs + row * kPitch + vector * 4;
    const uint4 word{from[0], from[1], from[2], from[3]};
    *reinterpret_cast<uint4*>(p.to + (image * p.pixels + pixel) * p.channels + channel) = word;
  }
  __syncthreads();
}

__global__ void __launch_bounds__(kThreads, kBlocks)
    conv_pack(const __grid_constant__ ChannelPack first, const __grid_constant__ ChannelPack second) {
  ROOFTILE_SHARED(pairs, unsigned[kSide * kPitch]);
#if defined(ROOFTILE_HAS_SM90)
  rooftile::cuda::let_next_start();
#endif
  for (std::int64_t t = blockIdx.x; t < first.tiles + second.tiles; t += gridDim.x)
    t < first.tiles ? pack_tile(first, t, &pairs[0]) : pack_tile(second, t - first.tiles, &pairs[0]);
}

}  // namespace

Status pack_channels(const CudaLaunch& launch, const ConvProblem& p) {
  if (p.pack_count == 0) return {};
  const ChannelPack first = pack_of(p.packs[0]),
                    second = p.pack_count > 1 ? pack_of(p.packs[1]) : ChannelPack{};
  const std::int64_t blocks =
      std::min<std::int64_t>(first.tiles + second.tiles, kBlocks * launch.multiprocessors);
  return rooftile::cuda::launch(launch, "conv2d", {static_cast<unsigned>(blocks), kThreads}, conv_pack, first,
                                second);
}

}  // namespace rooftile::conv_gpu
