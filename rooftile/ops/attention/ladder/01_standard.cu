// Idea:    a thread for each query: scores for their maximum, again for their sum, again for the output.
// Changed: nothing; this is the equation.
// Binds:   latency and L1: every thread reads all keys for itself, a scalar at a time, three times over, and
//          adds to its output in memory once for each key.
// Next:    a block for each query keeps its scores on chip.
#include "rooftile/ops/attention/ladder/rung.h"

namespace rooftile::ladder {
namespace {
using namespace attention_rung;

constexpr int kThreads = 128;

/// scale · q[i]·k[j].
__device__ float score(const AttentionProblem& p, const HeadRows& q, const HeadRows& k, std::int64_t i,
                       std::int64_t j) {
  float sum = 0;
  for (std::int64_t c = 0; c < p.d; ++c) sum = fmaf(q.at(i, c), k.at(j, c), sum);
  return sum * p.scale;
}

__global__ void __launch_bounds__(kThreads) attention_standard(const __grid_constant__ AttentionProblem p) {
  const std::int64_t row = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (row >= p.b * p.h * p.s) return;
  const std::int64_t i = row % p.s, head = row / p.s % p.h, batch = row / p.s / p.h;
  const HeadRows q(p.q, batch, head), k(p.k, batch, head / p.group()), v(p.v, batch, head / p.group()),
      y(p.y, batch, head);
  const AttentionRange keys = p.keys(i);

  // [passes]
  float row_max = -HUGE_VALF, sum = 0;
  for (std::int64_t j = keys.begin; j < keys.end; ++j) row_max = fmaxf(row_max, score(p, q, k, i, j));
  for (std::int64_t j = keys.begin; j < keys.end; ++j) sum += expf(score(p, q, k, i, j) - row_max);

  for (std::int64_t c = 0; c < p.e; ++c) y.at(i, c) = 0;
  for (std::int64_t j = keys.begin; j < keys.end; ++j) {
    const float weight = expf(score(p, q, k, i, j) - row_max) / sum;
    for (std::int64_t c = 0; c < p.e; ++c) y.at(i, c) = fmaf(weight, v.at(j, c), y.at(i, c));
  }
  // [/passes]
  put_lse(p, batch, head, i, row_max, sum);
}

}  // namespace

Status launch_attention_standard(const CudaLaunch& launch, const AttentionProblem& p) {
  const std::int64_t rows = p.b * p.h * p.s;
  return launch_blocks(launch, p, (rows + kThreads - 1) / kThreads, kThreads, 0, attention_standard);
}

}  // namespace rooftile::ladder
