// Wrong [race]: all blocks compute the first head
#include <cuda_runtime.h>

#include "rooftile/backend/cuda/shared.h"

/// Queries, keys, heads, and channels of a head: at most 64.
struct Sizes {
  int s, t, h, d;
};

/// y = softmax(scale · q·kᵀ)·v for each head. Block (x, head, batch) has queries 64 x to 64 x + 63, a thread
/// each. Channel c of query i is q[((batch * s + i) * h + head) * d + c], and of key j k[((batch * t + j) * h
/// + head) * d + c]; v as k, y as q. Causal: query i sees keys 0 to i + t - s; one that sees none has y = 0.
__global__ void attention(const float* q, const float* k, const float* v, float* y, Sizes n, float scale,
                          bool causal) {
  ROOFTILE_SHARED(k_tile, float[32][64]);
  ROOFTILE_SHARED(v_tile, float[32][64]);
  const int head = 0, batch = blockIdx.z, thread = threadIdx.x;
  const int i = blockIdx.x * 64 + thread;
  const int seen = causal ? min(n.t, i + n.t - n.s + 1) : n.t;
  const long long query = (static_cast<long long>(batch * n.s + i) * n.h + head) * n.d;
  float mine[64], sums[64];
  for (int c = 0; c < n.d; ++c) {
    mine[c] = i < n.s ? q[query + c] * scale : 0;
    sums[c] = 0;
  }
  float most = -INFINITY, sum = 0;
  for (int first = 0; first < n.t; first += 32) {
    for (int at = thread; at < 32 * n.d; at += 64) {
      const int row = at / n.d, c = at % n.d;
      const long long key = (static_cast<long long>(batch * n.t + first + row) * n.h + head) * n.d;
      k_tile[row][c] = first + row < n.t ? k[key + c] : 0;
      v_tile[row][c] = first + row < n.t ? v[key + c] : 0;
    }
    __syncthreads();  // the tiles are there
    for (int j = 0; j < 32 && first + j < seen; ++j) {
      float score = 0;
      for (int c = 0; c < n.d; ++c) score = fmaf(mine[c], k_tile[j][c], score);
      const float larger = fmaxf(most, score), shrink = expf(most - larger), weight = expf(score - larger);
      most = larger;
      sum = sum * shrink + weight;
      for (int c = 0; c < n.d; ++c) sums[c] = fmaf(weight, v_tile[j][c], sums[c] * shrink);
    }
    __syncthreads();  // all have read them
  }
  if (i < n.s)
    for (int c = 0; c < n.d; ++c) y[query + c] = sum == 0 ? 0 : sums[c] / sum;
}
