// Idea:    a tile of queries shares a tile of keys and values; the softmax goes along. A larger maximum
//          shrinks what was added up before: l and y times e^(m_old - m_new).
// Changed: four threads have a query, with a quarter of its channels in registers each; keys come to shared
//          memory once for 32 queries, and no score outlives its key.
// Binds:   shared memory: two flops for each 4 bytes read there, and two shuffles a score.
// Next:    a thread has 4x4 scores, so that what it reads serves four times.
#include "rooftile/ops/attention/ladder/rung.h"

namespace rooftile::ladder {
namespace {
using namespace attention_rung;

constexpr int kThreads = 128, kShare = 4, kQueries = kThreads / kShare, kKeys = 32;
constexpr int kMaxChannels = 128, kEach = kMaxChannels / kShare;

/// A tile of keys or values to shared memory.
__device__ void load_tile(float (&to)[kKeys][kMaxChannels], const HeadRows& from, std::int64_t first,
                          std::int64_t end, int size) {
  for (int row = static_cast<int>(threadIdx.x / 32); row < kKeys; row += kThreads / 32)
    for (int c = static_cast<int>(threadIdx.x % 32); c < size; c += 32)
      to[row][c] = first + row < end ? from.at(first + row, c) : 0;
}

__global__ void __launch_bounds__(kThreads) attention_online(const __grid_constant__ AttentionProblem p) {
  ROOFTILE_SHARED(k_tile, float[kKeys][kMaxChannels]);
  ROOFTILE_SHARED(v_tile, float[kKeys][kMaxChannels]);
  const std::int64_t tiles = (p.s + kQueries - 1) / kQueries, tile = blockIdx.x % tiles;
  const std::int64_t head = blockIdx.x / tiles % p.h, batch = blockIdx.x / tiles / p.h;
  const HeadRows q_rows(p.q, batch, head), k_rows(p.k, batch, head / p.group()),
      v_rows(p.v, batch, head / p.group()), y_rows(p.y, batch, head);
  const int d = static_cast<int>(p.d), e = static_cast<int>(p.e);
  const int share = static_cast<int>(threadIdx.x) % kShare;
  const std::int64_t begin = tile * kQueries, i = begin + threadIdx.x / kShare;
  const bool live = i < p.s;
  const std::int64_t end = begin + kQueries < p.s ? begin + kQueries : p.s;

  float q[kEach], y[kEach];
  ROOFTILE_UNROLL for (int c = 0; c < kEach; ++c) {
    const int channel = c * kShare + share;
    q[c] = live && channel < d ? q_rows.at(i, channel) * p.scale : 0;
    y[c] = 0;
  }
  const AttentionRange keys = live ? p.keys(i) : AttentionRange{0, 0}, any = p.keys_of(begin, end);
  // [online]
  float m = -HUGE_VALF, l = 0;
  for (std::int64_t first = any.begin; first < any.end; first += kKeys) {
    __syncthreads();  // the tile before was read
    load_tile(k_tile, k_rows, first, p.t, d);
    load_tile(v_tile, v_rows, first, p.t, e);
    __syncthreads();
    for (int n = 0; n < kKeys; ++n) {
      float score = 0;
      ROOFTILE_UNROLL for (int c = 0; c < kEach; ++c) if (c * kShare + share < d) score =
          fmaf(q[c], k_tile[n][c * kShare + share], score);
      for (int far = kShare / 2; far > 0; far /= 2) score += __shfl_xor_sync(0xffffffffu, score, far);
      if (first + n < keys.begin || first + n >= keys.end) continue;

      const float larger = fmaxf(m, score), shrink = expf(m - larger), weight = expf(score - larger);
      m = larger;
      l = fmaf(l, shrink, weight);
      ROOFTILE_UNROLL for (int c = 0; c < kEach; ++c) if (c * kShare + share < e) y[c] =
          fmaf(weight, v_tile[n][c * kShare + share], y[c] * shrink);
    }
  }
  // [/online]
  if (!live) return;
  ROOFTILE_UNROLL for (int c = 0; c < kEach; ++c) if (c * kShare + share < e)
      y_rows.at(i, c * kShare + share) = l == 0 ? 0 : y[c] / l;
  if (share == 0) put_lse(p, batch, head, i, m, l);
}

}  // namespace

Status launch_attention_online(const CudaLaunch& launch, const AttentionProblem& p) {
  return launch_blocks(launch, p, p.b * p.h * ((p.s + kQueries - 1) / kQueries), kThreads, 0,
                       attention_online);
}

}  // namespace rooftile::ladder
