#pragma once
// What batch norm and group norm share on a CPU: the sums of segments, and the elements.
#include <algorithm>

#include "rooftile/ops/batch_norm/batch_norm.tile.h"
#include "rooftile/tile/cpu/launch.h"

namespace rooftile::norm {
inline namespace ROOFTILE_ISA {
using namespace tile;

/// Lanes of a segment's sums: element s of a plane goes to lane s % kSumLanes, in every layout. Sixteen on
/// each instruction set: beyond the caches one vector of AVX-512 keeps up with memory, and along channels
/// their sums stay in L1.
constexpr int kSumLanes = 16, kLaneVectors = kSumLanes / kVecLanes<float>;
/// Channels whose sums a thread has at a time where rows lie along channels: 2 · 16 · 64 floats are 8 KiB.
constexpr int kChannels = 64;

struct Lanes16 {
  Vec<float> v[kLaneVectors];
};
ROOFTILE_TILE Lanes16 splat16(float value) {
  Lanes16 r;
  for (int i = 0; i < kLaneVectors; ++i) r.v[i] = splat(value);
  return r;
}
template <class T>
ROOFTILE_TILE Lanes16 load16(const T* p) {
  Lanes16 r;
  for (int i = 0; i < kLaneVectors; ++i) widen(p + i * kVecLanes<float>, r.v[i]);
  return r;
}
ROOFTILE_TILE void store16(float* p, const Lanes16& a) {
  for (int i = 0; i < kLaneVectors; ++i) store_unaligned(p + i * kVecLanes<float>, a.v[i]);
}
/// `live` elements `stride` apart; the other lanes are `other`.
template <class T>
__attribute__((noinline)) Lanes16 gather16(const T* p, std::int64_t stride, int live, float other) {
  alignas(64) T elements[kSumLanes] = {};
  for (int k = 0; k < live; ++k) elements[k] = p[k * stride];
  alignas(64) float lanes[kSumLanes];
  store16(lanes, load16(elements));
  for (int k = live; k < kSumLanes; ++k) lanes[k] = other;
  return load16(lanes);
}
template <class T>
ROOFTILE_TILE Lanes16 some16(const T* p, std::int64_t stride, std::int64_t live, float other) {
  if (stride == 1 && live >= kSumLanes) return load16(p);
  return gather16(p, stride, static_cast<int>(std::min<std::int64_t>(live, kSumLanes)), other);
}
template <class T>
ROOFTILE_TILE float value_at(const T* p) {
  return static_cast<float>(load_scalar(p, dtype_of<T>));
}

/// Forward: sums of x - shift and their squares. Backward: sums of dy, and of dy · (x - mean).
template <bool kBackward>
ROOFTILE_TILE void add16(Lanes16& first, Lanes16& second, const Lanes16& x, const Lanes16& dy,
                         const Lanes16& about) {
  for (int i = 0; i < kLaneVectors; ++i) {
    const Vec<float> off = x.v[i] - about.v[i];
    first.v[i] += kBackward ? dy.v[i] : off;
    second.v[i] = vfma(kBackward ? dy.v[i] : off, off, second.v[i]);
  }
}
/// The lanes' sum, in halves.
template <class V>
ROOFTILE_TILE V sum_lanes(V* lanes, std::int64_t stride) {
  for (int half = kSumLanes / 2; half > 0; half /= 2)
    for (int k = 0; k < half; ++k) lanes[k * stride] += lanes[(k + half) * stride];
  return lanes[0];
}

/// How far ahead of its reading memory is asked for elements.
constexpr std::int64_t kAheadBytes = 2048;

/// A channel's segment, its elements along S.
template <class T, bool kBackward>
void sum_plane(const BatchNormProblem& p, std::int64_t channel, std::int64_t index) {
  const NormSegment g = p.segments.at(index);
  const T* x = static_cast<const T*>(p.x.data) + channel * p.x.c;
  const T* dy = static_cast<const T*>(p.dy.data) + channel * p.dy.c;
  float* to = p.partial_of(channel, index);
  const float about = kBackward ? p.mean_of(g.n_begin, channel)
                                : kernels::shift_of(value_at(x + p.x.offset(g.n_begin, 0, g.s_begin)));
  const Lanes16 shift = splat16(about);
  Lanes16 first = splat16(0), second = splat16(0);
  const bool dense = p.x.s == 1 && (!kBackward || p.dy.s == 1);
  for (std::int64_t n = g.n_begin; n < g.n_end; ++n) {
    const T *from = x + n * p.x.n, *gradient = dy + n * p.dy.n;
    std::int64_t s = g.s_begin;
    if (dense)
      for (; s + kSumLanes <= g.s_end; s += kSumLanes) {
        __builtin_prefetch(reinterpret_cast<const char*>(from + s) + kAheadBytes);
        if (kBackward) __builtin_prefetch(reinterpret_cast<const char*>(gradient + s) + kAheadBytes);
        const Lanes16 its = load16(from + s);
        add16<kBackward>(first, second, its, kBackward ? load16(gradient + s) : its, shift);
      }
    for (; s < g.s_end; s += kSumLanes) {
      const Lanes16 its = some16(from + s * p.x.s, p.x.s, g.s_end - s, about);
      add16<kBackward>(first, second, its,
                       kBackward ? some16(gradient + s * p.dy.s, p.dy.s, g.s_end - s, 0) : its, shift);
    }
  }
  alignas(64) float lanes[2][kSumLanes];
  store16(lanes[0], first), store16(lanes[1], second);
  to[0] = about, to[1] = sum_lanes(lanes[0], 1), to[2] = sum_lanes(lanes[1], 1);
}

/// Segments of up to kChannels channels from `begin` on, each row along C.
template <class T, bool kBackward>
void sum_channels(const BatchNormProblem& p, std::int64_t begin, std::int64_t index) {
  const NormSegment g = p.segments.at(index);
  const auto count = static_cast<int>(std::min<std::int64_t>(kChannels, p.c - begin));
  const int blocks = (count + kSumLanes - 1) / kSumLanes;
  const T* x = static_cast<const T*>(p.x.data) + begin * p.x.c;
  const T* dy = static_cast<const T*>(p.dy.data) + begin * p.dy.c;
  alignas(64) float about[kChannels] = {};
  alignas(64) float sums[2][kSumLanes][kChannels] = {};
  for (int k = 0; k < count; ++k)
    about[k] = kBackward ? p.mean_of(g.n_begin, begin + k)
                         : kernels::shift_of(value_at(x + k * p.x.c + p.x.offset(g.n_begin, 0, g.s_begin)));
  for (std::int64_t n = g.n_begin; n < g.n_end; ++n)
    for (std::int64_t s = g.s_begin; s < g.s_end; ++s) {
      const T *from = x + n * p.x.n + s * p.x.s, *gradient = dy + n * p.dy.n + s * p.dy.s;
      float *first = sums[0][s % kSumLanes], *second = sums[1][s % kSumLanes];
      for (int b = 0; b < blocks; ++b) {
        const int at = b * kSumLanes;
        const Lanes16 its = some16(from + at * p.x.c, p.x.c, count - at, 0);
        Lanes16 one = load16(first + at), two = load16(second + at);
        add16<kBackward>(one, two, its,
                         kBackward ? some16(gradient + at * p.dy.c, p.dy.c, count - at, 0) : its,
                         load16(about + at));
        store16(first + at, one), store16(second + at, two);
      }
    }
  for (int k = 0; k < count; ++k) {
    float* to = p.partial_of(begin + k, index);
    to[0] = about[k];
    for (int which : {0, 1}) to[1 + which] = sum_lanes(&sums[which][0][k], kChannels);
  }
}

inline float weight_at(const NormVector& v, std::int64_t i, float otherwise) {
  if (!v.data) return otherwise;
  return static_cast<float>(
      load_scalar(static_cast<const std::byte*>(v.data) + i * v.stride * bits(v.dtype) / 8, v.dtype));
}
inline void store_weight(const NormVector& v, std::int64_t i, double value) {
  if (v.data)
    store_scalar(static_cast<std::byte*>(v.data) + i * v.stride * bits(v.dtype) / 8, v.dtype, value);
}

template <bool kBackward>
void normalize(const CpuLaunch& launch, const BatchNormProblem& p) {
  using P = BatchNormProblem;
  for_each_row(launch, p.rows, p.dtype,
               [&]<class T>(auto team, std::int64_t row, std::int64_t end) ROOFTILE_INLINE {
                 kernels::normalize<kBackward>(team, row_of<const T>(p.rows, P::kX, p.data[P::kX], row, end),
                                               row_of<const T>(p.rows, P::kDy, p.data[P::kDy], row, end),
                                               row_of<T>(p.rows, P::kY, p.data[P::kY], row, end),
                                               kernels::NormNumbers(p, row, 0, p.rows.columns));
               });
}

template <bool kBackward>
void sum_segments(const CpuLaunch& launch, const BatchNormProblem& p) {
  const std::int64_t bytes = p.n * p.c * p.s * bits(p.dtype) / 8 * (kBackward ? 2 : 1);
  const std::int64_t blocks = p.along_channels ? (p.c + kChannels - 1) / kChannels : p.c;
  with_type<float, f16, bf16>(p.dtype, [&]<class T>() {
    for_programs(launch, blocks * p.segments.count, bytes,
                 [&](const ThreadScratch&, std::int64_t begin, std::int64_t end) {
                   for (std::int64_t i = begin; i < end; ++i) {
                     const std::int64_t segment = i / blocks, block = i % blocks;
                     if (p.along_channels)
                       sum_channels<T, kBackward>(p, block * kChannels, segment);
                     else
                       sum_plane<T, kBackward>(p, block, segment);
                   }
                 });
  });
}

}  // namespace ROOFTILE_ISA
}  // namespace rooftile::norm
