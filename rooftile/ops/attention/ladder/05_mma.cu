// Idea:    tensor cores multiply: mma.sync does 2048 fma of bf16 in one instruction of a warp.
// Changed: a warp has 16 queries. What a product leaves in a lane's registers is, two by two, what the next
//          one takes: scores become weights, and never see shared memory.
// Binds:   latency: nothing is multiplied while a tile comes. And shared memory: each fragment of keys serves
//          16 queries.
// Next:    the library's kernel: the next tile in flight, 32 queries to a warp, any head, dtype and option.
#include <cuda_bf16.h>

#include "rooftile/backend/cuda/launch.h"
#include "rooftile/backend/cuda/ptx.h"
#include "rooftile/backend/cuda/shared.h"
#include "rooftile/ops/attention/attention.gpu.h"
#include "rooftile/ops/attention/ladder/ladder.h"

namespace rooftile::ladder {
namespace {
using namespace attention_gpu;

constexpr int kSize = 64, kQueries = 64, kKeys = 64, kWords = kSize / 8, kLanes = 32;
struct Tiles {
  uint4 q[kQueries][kWords], k[kKeys][kWords], v[kKeys][kWords];
};

/// Word w of row r lies at w ^ r % 8: the eight rows that ldmatrix reads at once are in all 32 banks.
template <int kRows>
__device__ uint4* place(uint4 (&tile)[kRows][kWords], int row, int word) {
  return &tile[row][word ^ row % 8];
}
/// Rows from `first` on, zeros past the `end`-th.
__device__ void copy_tile(uint4 (&to)[kKeys][kWords], const HeadRows<bf16>& from, std::int64_t first,
                          std::int64_t end) {
  for (int e = static_cast<int>(threadIdx.x); e < kKeys * kWords; e += kThreads) {
    const int row = e / kWords, word = e % kWords;
    const bool there = first + row < end;
    cuda::cp_async_16(place(to, row, word), from.row(there ? first + row : 0) + word * 8, there ? 16 : 0);
  }
  cuda::cp_async_commit();
}
__device__ unsigned pair(float low, float high) {
  const __nv_bfloat162 two = __floats2bfloat162_rn(low, high);
  unsigned bits;
  memcpy(&bits, &two, sizeof bits);
  return bits;
}

__global__ void __launch_bounds__(kThreads) attention_mma_rung(const __grid_constant__ AttentionProblem p) {
  ROOFTILE_SHARED(tiles, Tiles);
  const Place at(p.b, p.h, p.s, kQueries);
  const WholeHead<bf16> its(p, at);
  const int lane = static_cast<int>(threadIdx.x) % kLanes,
            above = static_cast<int>(threadIdx.x) / kLanes * 16;
  const std::int64_t last = at.first + kQueries < p.s ? at.first + kQueries : p.s;
  const AttentionRange any = p.keys_of(at.first, last);
  copy_tile(tiles.q, its.q(), at.first, p.s);

  float m[2] = {-HUGE_VALF, -HUGE_VALF}, l[2] = {}, y[kSize / 8][4] = {};
  for (std::int64_t first = any.begin / kKeys * kKeys; first < any.end; first += kKeys) {
    __syncthreads();  // the tile before was read
    copy_tile(tiles.k, its.k(), first, p.t);
    copy_tile(tiles.v, its.v(), first, p.t);
    cuda::cp_async_wait<0>();
    __syncthreads();

    // [scores]
    float s[kKeys / 8][4] = {};  // of 8 keys: rows lane / 4 and 8 below, keys 2(lane % 4) and the next
    ROOFTILE_UNROLL for (int step = 0; step < kSize / 16; ++step) {
      unsigned q[4], k[4];  // 16 queries by 16 channels; 16 keys by 16 channels
      cuda::load_matrix(q, place(tiles.q, above + lane % 16, step * 2 + lane / 16));
      ROOFTILE_UNROLL for (int j = 0; j < kKeys / 16; ++j) {
        cuda::load_matrix(k, place(tiles.k, j * 16 + lane % 8 + lane / 16 * 8, step * 2 + lane / 8 % 2));
        const unsigned left[2] = {k[0], k[1]}, right[2] = {k[2], k[3]};
        cuda::mma_bf16(s[2 * j], q, left);
        cuda::mma_bf16(s[2 * j + 1], q, right);
      }
    }
    // [/scores]
    ROOFTILE_UNROLL for (int half = 0; half < 2; ++half) {
      const std::int64_t i = at.first + above + half * 8 + lane / 4;
      const AttentionRange keys = i < p.s ? p.keys(i) : AttentionRange{0, 0};
      float most = m[half], sum = 0;
      ROOFTILE_UNROLL for (int n = 0; n < kKeys / 8 * 2; ++n) {
        float& score = s[n / 2][half * 2 + n % 2];
        const std::int64_t j = first + n / 2 * 8 + lane % 4 * 2 + n % 2;
        score = j >= keys.begin && j < keys.end ? score * p.scale : -HUGE_VALF;
        most = fmaxf(most, score);
      }
      for (int far = 1; far < 4; far *= 2) most = fmaxf(most, __shfl_xor_sync(0xffffffffu, most, far));
      const float from = most == -HUGE_VALF ? 0 : most, shrink = power(m[half] - from);
      m[half] = most;
      ROOFTILE_UNROLL for (int n = 0; n < kKeys / 8 * 2; ++n) {
        float& weight = s[n / 2][half * 2 + n % 2];
        weight = power(weight - from);
        sum += weight;
      }
      l[half] = fmaf(l[half], shrink, sum);
      ROOFTILE_UNROLL for (int g = 0; g < kSize / 8 * 2; ++g) y[g / 2][half * 2 + g % 2] *= shrink;
    }
    // [values]
    ROOFTILE_UNROLL for (int step = 0; step < kKeys / 16; ++step) {
      const float(&near)[4] = s[2 * step], (&far)[4] = s[2 * step + 1];
      const unsigned weights[4] = {pair(near[0], near[1]), pair(near[2], near[3]), pair(far[0], far[1]),
                                   pair(far[2], far[3])};
      ROOFTILE_UNROLL for (int g = 0; g < kSize / 16; ++g) {
        unsigned v[4];  // 16 keys by 16 channels, turned
        cuda::load_matrix<true>(v, place(tiles.v, step * 16 + lane % 16, g * 2 + lane / 16));
        const unsigned left[2] = {v[0], v[1]}, right[2] = {v[2], v[3]};
        cuda::mma_bf16(y[2 * g], weights, left);
        cuda::mma_bf16(y[2 * g + 1], weights, right);
      }
    }
    // [/values]
  }
  cuda::cp_async_wait<0>();
  ROOFTILE_UNROLL for (int half = 0; half < 2; ++half) {
    const std::int64_t i = at.first + above + half * 8 + lane / 4;
    float sum = l[half];
    for (int far = 1; far < 4; far *= 2) sum += __shfl_xor_sync(0xffffffffu, sum, far);
    if (i >= p.s) continue;
    ROOFTILE_UNROLL for (int g = 0; g < kSize / 8; ++g) ROOFTILE_UNROLL for (int one = 0; one < 2; ++one)
        its.y()
            .put(i, g * 8 + lane % 4 * 2 + one, sum == 0 ? 0 : y[g][half * 2 + one] / sum);
    if (p.lse && lane % 4 == 0) its.put_lse(i, m[half] + logf(sum));
  }
}

}  // namespace

Status launch_attention_mma(const CudaLaunch& launch, const AttentionProblem& p) {
  return launch_tiles(launch, "attention", p, p.h, p.s, kQueries, kThreads, 0, attention_mma_rung);
}

}  // namespace rooftile::ladder
