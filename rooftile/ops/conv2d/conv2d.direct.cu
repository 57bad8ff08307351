// Few filters a group (depthwise: one): a tile of a product would be nearly empty. So a thread sums by
// itself, over a filter's terms, for four windows; the filter's element is read once for the four.
#include "rooftile/ops/conv2d/conv2d.gpu.h"

namespace rooftile::conv_gpu {
namespace {

constexpr int kEach = 4;             // windows of a thread
constexpr int kWindows = 8 * kEach;  // of a block whose lanes are neighbouring channels

/// Lanes are neighbouring channels where those lie next to each other in the result, else windows.
struct Direct {
  GpuConv conv;
  std::int64_t channels, channel_tiles, windows;  ///< of all groups; tiles of them; of a tile
  bool channel_lanes;
};

template <class T>
ROOFTILE_TILE float value_at(const Windows& v, std::int64_t at) {
  if constexpr (std::is_same_v<T, float>)
    return static_cast<const float*>(v.data)[at];
  else
    return gemm_gpu::float_at(v.data, at, std::is_same_v<T, bf16> ? DType::bf16 : DType::f16);
}

template <class T>
__global__ void __launch_bounds__(kThreads)
    conv_direct(const __grid_constant__ Direct p, std::int64_t first) {
  const GpuConv& c = p.conv;
  const Windows &filters = c.rows, &picture = c.columns;
  const int t = static_cast<int>(threadIdx.x);
  const std::int64_t tile = first + blockIdx.x, along = quotient(tile, p.channel_tiles);
  std::int64_t channel = tile - along * p.channel_tiles, window = along * p.windows + t;
  if (p.channel_lanes) channel = channel * 32 + t % 32, window = along * p.windows + t / 32;
  const int step = p.channel_lanes ? kThreads / 32 : kThreads;
  if (channel >= p.channels) return;
  const std::int64_t group = quotient(channel, c.m), row = channel - group * c.m;
  const std::int64_t w = group * filters.group + row * filters.n, x = group * picture.group;

  Place own[kEach];
  float sums[kEach] = {};
  ROOFTILE_UNROLL for (int e = 0; e < kEach; ++e) {
    const std::int64_t index = window + e * step;
    own[e] = index < c.n ? window_of(picture, index) : Place{0, kOutside, 0};
  }
  for (std::int64_t r = 0; r < filters.taps_h; ++r) {
    for (std::int64_t s = 0; s < filters.taps_w; ++s) {
      const Place tap = place_at(picture, 0, r * picture.tap_h, s * picture.tap_w);
      std::int64_t at[kEach];
      bool has[kEach];
      ROOFTILE_UNROLL for (int e = 0; e < kEach; ++e) {
        at[e] = 0;
        has[e] = inside(picture, own[e], tap, at[e]);
      }
      const std::int64_t of_tap = w + r * filters.h + s * filters.w;
      for (std::int64_t k = 0; k < filters.channels; ++k) {
        const float factor = value_at<T>(filters, of_tap + k * filters.c);
        ROOFTILE_UNROLL for (int e = 0; e < kEach; ++e) {
          const float pixel = has[e] ? value_at<T>(picture, x + at[e] + k * picture.c) : 0;
          sums[e] = __fmaf_rn(factor, pixel, sums[e]);
        }
      }
    }
  }
  const GpuTile of_group{group, 0, 0, 0, 0, 0};
  ROOFTILE_UNROLL for (int e = 0; e < kEach; ++e) {
    if (window + e * step < c.n) finish(c, of_group, row, window + e * step, 1, Four{{sums[e]}});
  }
}

}  // namespace

Status multiply_directly(const CudaLaunch& launch, const ConvProblem& problem, const ConvProduct& product) {
  Direct p{gpu_conv(problem, product, kM, kN), 0, 0, 0, false};  // never turned: m is small
  p.channels = product.groups * product.m();
  p.channel_lanes = product.out.i_stride == 1 && p.channels >= 32;
  p.channel_tiles = p.channel_lanes ? (p.channels + 31) / 32 : p.channels;
  p.windows = p.channel_lanes ? kWindows : kThreads * kEach;
  p.conv.tiles = p.channel_tiles * ((p.conv.n + p.windows - 1) / p.windows);
  return with_type<float, bf16, f16>(
      problem.dtype, [&]<class T>() { return launch_blocks(launch, p, p.conv.tiles, conv_direct<T>); });
}

}  // namespace rooftile::conv_gpu
