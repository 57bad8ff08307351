// Depthwise: each filter sees its own channel. Where channels are 16-byte vectors (NHWC) a thread sums a
// vector of them by itself, for a few windows; factors come from shared memory. For each element the chain of
// conv2d.direct.cu.
#include "rooftile/ops/conv2d/conv2d.vectors.h"

namespace rooftile::conv_gpu {
namespace {

constexpr int kBlock = 128, kLanes = 8;  // threads; those that have a window's vectors
constexpr int kEach = 4;                 // windows of a thread
constexpr int kTile = kBlock / kLanes * kEach;

template <class T>
inline constexpr int kVector = 16 / int(sizeof(T));  // channels

template <class T>
ROOFTILE_TILE void widen(float (&to)[kVector<T>], const uint4& vector) {
  const unsigned words[4] = {vector.x, vector.y, vector.z, vector.w};
  ROOFTILE_UNROLL for (int i = 0; i < 4; ++i) {
    if constexpr (std::is_same_v<T, float>) {
      to[i] = __uint_as_float(words[i]);
    } else if constexpr (std::is_same_v<T, bf16>) {
      to[2 * i] = __uint_as_float(words[i] << 16);
      to[2 * i + 1] = __uint_as_float(words[i] & 0xffff0000);
    } else {
      to[2 * i] = __half2float(__ushort_as_half(static_cast<std::uint16_t>(words[i] & 0xffff)));
      to[2 * i + 1] = __half2float(__ushort_as_half(static_cast<std::uint16_t>(words[i] >> 16)));
    }
  }
}

struct Depthwise {
  VectorPicture picture;
  GpuConv conv;
  std::int64_t channels, across, tiles;  ///< across: tiles of channels
};

template <class T>
__global__ void __launch_bounds__(kBlock)
    conv_depthwise(const __grid_constant__ Depthwise p, std::int64_t first) {
  constexpr int kChannels = kLanes * kVector<T>;
  ROOFTILE_SHARED(factors, float4[kMaxDepthwiseTaps * kChannels / 4]);
  const GpuConv& c = p.conv;
  const int t = static_cast<int>(threadIdx.x);
  const std::int64_t tile = first + blockIdx.x, along = quotient(tile, p.across);
  const std::int64_t first_channel = (tile - along * p.across) * kChannels;
  const int first_window = static_cast<int>(along) * kTile, taps = p.picture.taps_h * p.picture.taps_w;
  const Windows& filters = c.rows;
  for (int e = t; e < taps * kChannels; e += kBlock) {
    const int tap = e / kChannels, r = tap / p.picture.taps_w;
    const std::int64_t channel = first_channel + e % kChannels, at = channel * filters.group + r * filters.h +
                                                                     (tap - r * p.picture.taps_w) * filters.w;
    constexpr DType kType = std::is_same_v<T, float>  ? DType::f32
                            : std::is_same_v<T, bf16> ? DType::bf16
                                                      : DType::f16;
    reinterpret_cast<float*>(&factors[0])[e] =
        channel < p.channels ? gemm_gpu::float_at(filters.data, at, kType) : 0;
  }
  __syncthreads();
  const std::int64_t channel = first_channel + t % kLanes * kVector<T>;
  const WindowRows<kEach, kLanes> rows(p.picture, first_window);
  if (channel >= p.channels) return;

  float sums[kEach][kVector<T>] = {};
  Term term(p.picture, 0);
  term.c = static_cast<int>(channel / kVector<T>);
  for (int tap = 0; tap < taps; ++tap) {
    const Tap at = term.tap(p.picture);
    uint4 pixels[kEach];
    ROOFTILE_UNROLL for (int i = 0; i < kEach; ++i) {
      pixels[i] = rows.inside(i, at) ? *rows.vector(p.picture, i, at) : uint4{0, 0, 0, 0};
    }
    float factor[kVector<T>];
    memcpy(factor, &factors[(tap * kChannels + t % kLanes * kVector<T>) / 4], sizeof factor);
    ROOFTILE_UNROLL for (int i = 0; i < kEach; ++i) {
      float pixel[kVector<T>];
      widen<T>(pixel, pixels[i]);
      ROOFTILE_UNROLL for (int l = 0; l < kVector<T>; ++l) sums[i][l] =
          __fmaf_rn(factor[l], pixel[l], sums[i][l]);
    }
    if (++term.s == p.picture.taps_w) term.s = 0, ++term.r;
  }
  ROOFTILE_UNROLL for (int i = 0; i < kEach; ++i) {
    const int window = first_window + t / kLanes + i * (kBlock / kLanes);
    if (window >= p.picture.windows) break;
    const std::int64_t at = pixel_of(c.out, window) + channel;
    ROOFTILE_UNROLL for (int l = 0; l < kVector<T>; l += 4) {
      Four v{{sums[i][l], sums[i][l + 1], sums[i][l + 2], sums[i][l + 3]}};
      if (c.bias)
        v = v +
            gemm_gpu::floats_at(c.bias, (channel + l) * c.bias_group, c.bias_group, 4, c.bias_dtype, false);
      if (c.activation != 0) v = gemm_gpu::activated(v, c.activation);
      store_four(c.out, at + l, v);
    }
  }
}

}  // namespace

Status multiply_depthwise(const CudaLaunch& launch, const ConvProblem& problem, const ConvProduct& product) {
  return with_type<float, bf16, f16>(problem.dtype, [&]<class T>() {
    Windows picture = product.right;
    picture.channels = product.groups;
    Depthwise p{vector_picture(picture, kVector<T>, kLanes), gpu_conv(problem, product, kM, kN, false),
                product.groups, 0, 0};
    p.across = (p.channels + kLanes * kVector<T> - 1) / (kLanes * kVector<T>);
    p.tiles = p.across * ((product.n() + kTile - 1) / kTile);
    return launch_blocks(launch, p, p.tiles, conv_depthwise<T>, kBlock);
  });
}

}  // namespace rooftile::conv_gpu
