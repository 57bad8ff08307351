// Idea:    a block for each query, and its row of scores in shared memory: each is computed once.
// Changed: threads share the keys, then the channels; maximum and sum come together over the block.
// Binds:   L2: every query still reads all keys and values for itself, 2·(D + E) flops for 4·(D + E) bytes;
//          and a row of scores must fit shared memory.
// Next:    a tile of queries shares a tile of keys, and no row of scores is kept.
#include "rooftile/ops/attention/ladder/rung.h"

namespace rooftile::ladder {
namespace {
using namespace attention_rung;

constexpr int kThreads = 128, kWarps = kThreads / 32;

/// All threads' values as one, by shuffles and one barrier; `part` is for one call alone.
template <class Operation>
__device__ float over_block(float mine, float* part, Operation operation) {
  for (int far = 16; far > 0; far /= 2) mine = operation(mine, __shfl_xor_sync(0xffffffffu, mine, far));
  if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = mine;
  __syncthreads();
  mine = part[0];
  for (int warp = 1; warp < kWarps; ++warp) mine = operation(mine, part[warp]);
  return mine;
}

__global__ void __launch_bounds__(kThreads) attention_fused(const __grid_constant__ AttentionProblem p) {
  ROOFTILE_DYNAMIC_SHARED(bytes);
  ROOFTILE_SHARED(parts, float[2][kWarps]);
  float* const scores = reinterpret_cast<float*>(bytes);
  const std::int64_t row = blockIdx.x, i = row % p.s, head = row / p.s % p.h, batch = row / p.s / p.h;
  const HeadRows q(p.q, batch, head), k(p.k, batch, head / p.group()), v(p.v, batch, head / p.group()),
      y(p.y, batch, head);
  const AttentionRange keys = p.keys(i);
  const int count = static_cast<int>(keys.size());

  // [fused]
  float row_max = -HUGE_VALF, sum = 0;
  for (int n = static_cast<int>(threadIdx.x); n < count; n += kThreads) {
    float score = 0;
    for (std::int64_t c = 0; c < p.d; ++c) score = fmaf(q.at(i, c), k.at(keys.begin + n, c), score);
    scores[n] = score * p.scale;
    row_max = fmaxf(row_max, scores[n]);
  }
  row_max = over_block(row_max, parts[0], [](float a, float b) { return fmaxf(a, b); });
  for (int n = static_cast<int>(threadIdx.x); n < count; n += kThreads) {
    scores[n] = expf(scores[n] - row_max);
    sum += scores[n];
  }
  sum = over_block(sum, parts[1], [](float a, float b) { return a + b; });

  for (std::int64_t c = threadIdx.x; c < p.e; c += kThreads) {
    float value = 0;
    for (int n = 0; n < count; ++n) value = fmaf(scores[n], v.at(keys.begin + n, c), value);
    y.at(i, c) = count > 0 ? value / sum : 0;
  }
  // [/fused]
  if (threadIdx.x == 0) put_lse(p, batch, head, i, row_max, sum);
}

}  // namespace

Status launch_attention_fused(const CudaLaunch& launch, const AttentionProblem& p) {
  return launch_blocks(launch, p, p.b * p.h * p.s, kThreads,
                       static_cast<std::size_t>(p.t + 1) * sizeof(float), attention_fused);
}

}  // namespace rooftile::ladder
