#pragma once
// What batch norm and group norm share on a GPU: the sums of segments, and the elements.
#include <cstring>

#include "rooftile/backend/cuda/shared.h"
#include "rooftile/ops/batch_norm/batch_norm.tile.h"
#include "rooftile/tile/cuda/elements.h"

namespace rooftile::norm {
namespace {  // of each op's file: kernels are its own
using namespace tile;

constexpr int kThreads = 256, kWarps = kThreads / kWarp;
/// Neighbouring elements that a thread has at a time, and how many times: element s of a plane goes to lane
/// s % kNormLanes in every layout.
constexpr int kItems = 4;
static_assert(kNormLanes == kItems * kWarp);
/// Along channels a block has so many of them.
constexpr int kChannels = 32, kColumns = kChannels / kItems, kRows = kThreads / kColumns;
static_assert(kNormLanes == kItems * kRows);

/// `live` of kItems elements; the rest are `other`. `vectors`: they are all or none, neighbours, and aligned.
template <class T>
ROOFTILE_TILE void load_items(const T* from, std::int64_t stride, std::int64_t live, bool vectors,
                              float other, float (&to)[kItems]) {
  if (vectors && live >= kItems) {
    using Word = std::conditional_t<sizeof(T) == 4, uint4, uint2>;
    const Word word = *reinterpret_cast<const Word*>(from);
    T items[kItems];
    memcpy(items, &word, sizeof word);
    ROOFTILE_UNROLL for (int i = 0; i < kItems; ++i) to[i] = widen<float>(items[i]);
  } else {
    ROOFTILE_UNROLL for (int i = 0; i < kItems; ++i) to[i] =
        i < live ? widen<float>(from[i * stride]) : other;
  }
}
/// Forward: sums of x - shift and their squares. Backward: sums of dy, and of dy · (x - mean).
template <bool kBackward>
ROOFTILE_TILE void add_item(float& first, float& second, float x, float dy, float about) {
  const float off = x - about, its = kBackward ? dy : off;
  first += its;
  second = fmaf(its, off, second);
}

// [planes]
/// A warp has a segment of a channel, its elements along S.
template <class T, bool kBackward>
__global__ void __launch_bounds__(kThreads)
    sum_planes(const __grid_constant__ BatchNormProblem p, bool vectors) {
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const std::int64_t index = std::int64_t{blockIdx.x} * kWarps + static_cast<int>(threadIdx.x) / kWarp;
  const std::int64_t segment = index / p.c, channel = index - segment * p.c;
  if (segment >= p.segments.count) return;
  const NormSegment g = p.segments.at(segment);
  const T* x = static_cast<const T*>(p.x.data) + channel * p.x.c;
  const T* dy = static_cast<const T*>(p.dy.data) + channel * p.dy.c;
  const float about = kBackward ? p.mean_of(g.n_begin, channel)
                                : kernels::shift_of(widen<float>(x[p.x.offset(g.n_begin, 0, g.s_begin)]));
  // Neighbours, or every 32nd element: which lane an element belongs to is the same.
  const int mine = vectors ? lane * kItems : lane, apart = vectors ? 1 : kWarp;
  float first[kItems] = {}, second[kItems] = {};
  constexpr int kSteps = kBackward ? 2 : 4;  // whose loads are issued at once
  std::int64_t n = g.n_begin, s = g.s_begin;
  while (n < g.n_end) {
    float its[kSteps][kItems], gradient[kSteps][kItems];
    ROOFTILE_UNROLL for (int u = 0; u < kSteps; ++u) {
      const std::int64_t rest = n < g.n_end ? g.s_end - s - mine : 0;
      const std::int64_t live = vectors ? rest : (rest + kWarp - 1) / kWarp;
      load_items(x + n * p.x.n + (s + mine) * p.x.s, apart * p.x.s, live, vectors, about, its[u]);
      if (kBackward)
        load_items(dy + n * p.dy.n + (s + mine) * p.dy.s, apart * p.dy.s, live, vectors, 0, gradient[u]);
      s += kNormLanes;
      if (s >= g.s_end) s = g.s_begin, ++n;
    }
    ROOFTILE_UNROLL for (int u = 0; u < kSteps; ++u) ROOFTILE_UNROLL for (int i = 0; i < kItems; ++i)
        add_item<kBackward>(first[i], second[i], its[u][i], kBackward ? gradient[u][i] : 0, about);
  }
  // Lanes in halves: 64 + 64, 32 + 32, …
  const auto sum = [&](float(&of)[kItems]) {
    if (!vectors) of[0] += of[2], of[1] += of[3], of[0] += of[1];
    for (int far = kWarp / 2; far > 0; far /= 2)
      ROOFTILE_UNROLL for (int i = 0; i < kItems; ++i) if (vectors || i == 0) of[i] +=
          __shfl_xor_sync(kAllLanes, of[i], far);
    if (vectors) of[0] += of[2], of[1] += of[3], of[0] += of[1];
    return of[0];
  };
  const float one = sum(first), two = sum(second);
  if (lane != 0) return;
  float* to = p.partial_of(channel, segment);
  to[0] = about, to[1] = one, to[2] = two;
}
// [/planes]

// [channels]
/// A block has a segment of kChannels channels, rows along C: a thread has kItems channels, and every 32nd
/// row.
template <class T, bool kBackward>
__global__ void __launch_bounds__(kThreads)
    sum_channels(const __grid_constant__ BatchNormProblem p, std::int64_t blocks, bool vectors) {
  ROOFTILE_SHARED(lanes, float[2][kRows][kChannels]);
  const int column = static_cast<int>(threadIdx.x) % kColumns, row = static_cast<int>(threadIdx.x) / kColumns;
  const std::int64_t segment = blockIdx.x / blocks;
  const std::int64_t channel = (blockIdx.x - segment * blocks) * kChannels + column * kItems;
  const std::int64_t there = p.c - channel;
  const NormSegment g = p.segments.at(segment);
  const T* x = static_cast<const T*>(p.x.data) + channel * p.x.c;
  const T* dy = static_cast<const T*>(p.dy.data) + channel * p.dy.c;
  float about[kItems], first[kItems][kItems] = {}, second[kItems][kItems] = {};
  if (!kBackward) load_items(x + p.x.offset(g.n_begin, 0, g.s_begin), p.x.c, there, vectors, 0, about);
  ROOFTILE_UNROLL for (int i = 0; i < kItems; ++i) about[i] = !kBackward  ? kernels::shift_of(about[i])
                                                              : i < there ? p.mean_of(g.n_begin, channel + i)
                                                                          : 0;
  for (std::int64_t n = g.n_begin; n < g.n_end; ++n)
    for (std::int64_t s = g.s_begin + row; s < g.s_end; s += kNormLanes) {
      float its[kItems][kItems], gradient[kItems][kItems];
      ROOFTILE_UNROLL for (int k = 0; k < kItems; ++k) {
        const std::int64_t at = s + k * kRows, live = at < g.s_end ? there : 0;
        load_items(x + n * p.x.n + at * p.x.s, p.x.c, live, vectors, 0, its[k]);
        if (kBackward) load_items(dy + n * p.dy.n + at * p.dy.s, p.dy.c, live, vectors, 0, gradient[k]);
      }
      ROOFTILE_UNROLL for (int k = 0; k < kItems; ++k) {
        if (s + k * kRows >= g.s_end) continue;
        ROOFTILE_UNROLL for (int i = 0; i < kItems; ++i) add_item<kBackward>(
            first[k][i], second[k][i], its[k][i], kBackward ? gradient[k][i] : 0, about[i]);
      }
    }
  // Lanes in halves: 64 + 64 and 32 + 32 in a thread, the rest through shared memory.
  ROOFTILE_UNROLL for (int i = 0; i < kItems; ++i) {
    lanes[0][row][column * kItems + i] = (first[0][i] + first[2][i]) + (first[1][i] + first[3][i]);
    lanes[1][row][column * kItems + i] = (second[0][i] + second[2][i]) + (second[1][i] + second[3][i]);
  }
  for (int half = kRows / 2; half > 0; half /= 2) {
    __syncthreads();
    if (row < half) ROOFTILE_UNROLL for (int i = 0; i < 2 * kItems; ++i) {
        float(&of)[kRows][kChannels] = lanes[i / kItems];
        of[row][column * kItems + i % kItems] += of[row + half][column * kItems + i % kItems];
      }
  }
  if (row > 0) return;
  for (int i = 0; i < kItems && i < there; ++i) {
    float* to = p.partial_of(channel + i, segment);
    to[0] = about[i], to[1] = lanes[0][0][column * kItems + i], to[2] = lanes[1][0][column * kItems + i];
  }
}
// [/channels]

ROOFTILE_TILE float weight_at(const NormVector& v, std::int64_t i, float otherwise) {
  if (!v.data) return otherwise;
  if (v.dtype == DType::f32) return *v.f32(i);
  return v.dtype == DType::f16 ? widen<float>(static_cast<const f16*>(v.data)[i * v.stride])
                               : widen<float>(static_cast<const bf16*>(v.data)[i * v.stride]);
}
ROOFTILE_TILE void store_weight(const NormVector& v, std::int64_t i, double value) {
  if (!v.data) return;
  if (v.dtype == DType::f32)
    *v.f32(i) = static_cast<float>(value);
  else if (v.dtype == DType::f16)
    static_cast<f16*>(v.data)[i * v.stride] = narrow<f16>(value);
  else
    static_cast<bf16*>(v.data)[i * v.stride] = narrow<bf16>(value);
}
ROOFTILE_TILE double warp_sum(double mine) {
  for (int far = kWarp / 2; far > 0; far /= 2) mine += __shfl_xor_sync(kAllLanes, mine, far);
  return mine;
}

template <class T, bool kBackward>
struct Normalize {
  BatchNormProblem p;
  template <class Team>
  ROOFTILE_TILE void operator()(const Team& team, const auto& part) const {
    using P = BatchNormProblem;
    const void* y = p.data[P::kY];
    kernels::normalize<kBackward>(
        team, part_of<const T>(p.rows, P::kX, p.data[P::kX], part, p.data[P::kX] == y),
        part_of<const T>(p.rows, P::kDy, p.data[P::kDy], part, p.data[P::kDy] == y),
        part_of<T>(p.rows, P::kY, y, part), kernels::NormNumbers(p, part.row, part.first, part.size));
  }
};

Status launch_blocks(const CudaLaunch& launch, const char* name, std::int64_t blocks, auto kernel,
                     const auto&... arguments) {
  if (blocks > kMaxBlocks)
    return Status::error("%s: the sums take %lld blocks, a launch has %lld at most", name,
                         static_cast<long long>(blocks), static_cast<long long>(kMaxBlocks));
  return rooftile::cuda::launch(launch, name, {static_cast<unsigned>(blocks), kThreads}, kernel,
                                arguments...);
}

template <bool kBackward>
Status sum_segments(const CudaLaunch& launch, const char* name, const BatchNormProblem& p) {
  if (p.c == 0 || p.segments.count == 0) return {};
  return with_type<float, f16, bf16>(p.dtype, [&]<class T>() -> Status {
    const auto whole = [&](const NormTensor& t, std::int64_t along, std::int64_t other, std::int64_t size) {
      return along == 1 && size % kItems == 0 && other % kItems == 0 && t.n % kItems == 0 &&
             reinterpret_cast<std::uintptr_t>(t.data) % (kItems * sizeof(T)) == 0;
    };
    const auto vectors = [&](const NormTensor& t) {
      return p.along_channels ? whole(t, t.c, t.s, p.c) : whole(t, t.s, t.c, p.s);
    };
    const bool all = vectors(p.x) && vectors(p.dy);
    const std::int64_t blocks = (p.c + kChannels - 1) / kChannels;
    return p.along_channels ? launch_blocks(launch, name, blocks * p.segments.count,
                                            sum_channels<T, kBackward>, p, blocks, all)
                            : launch_blocks(launch, name, (p.c * p.segments.count + kWarps - 1) / kWarps,
                                            sum_planes<T, kBackward>, p, all);
  });
}
template <bool kBackward>
Status normalize(const CudaLaunch& launch, const char* name, const BatchNormProblem& p) {
  return with_type<float, f16, bf16>(p.dtype, [&]<class T>() -> Status {
    bool aligned = true;
    for (int o = 0; o < 3; ++o) aligned = aligned && aligned_rows(p.rows, o, p.data[o], sizeof(T));
    constexpr int kLanes = 16 / int(sizeof(T)), kChunks = kBackward ? 2 : 4;
    return for_parts<kLanes, kChunks, float>(launch, name, p.rows.rows, p.rows.columns, aligned,
                                             Normalize<T, kBackward>{p});
  });
}

}  // namespace
}  // namespace rooftile::norm
