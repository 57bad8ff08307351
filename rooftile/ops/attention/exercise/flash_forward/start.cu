// Exercise flash_forward: attention by tiles of keys, without a matrix of scores in memory.
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
  // 1. The thread's query in registers, times scale; maximum -∞, sum and 64 weighted sums 0.
  // 2. For each tile of 32 keys: the block loads keys and values into shared memory. Then a thread takes the
  //    keys that its query sees: score, new maximum, sums rescaled, weight and weighted value added.
  // 3. y = weighted sums / sum.
}
