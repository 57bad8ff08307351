// Idea: a thread for each row, and in it three loops, as the equation reads; but s·x - max is
// (u·x - max u·x)·(s / u), where u is a power of two (SplitScale), so that equal elements stay equal.
// Changed: this is the first rung.
// Binds: requests. A warp's 32 threads read a row's length apart, so each request is for 32 sectors of 32
// bytes and uses 4 bytes of each; and there are as few threads as rows. Next: neighbours take neighbouring
// elements.
#include <cmath>

#include "rooftile/backend/cuda/launch.h"
#include "rooftile/ops/softmax/ladder/ladder.h"

namespace rooftile::ladder {
namespace {

constexpr int kThreads = 128;

__global__ void softmax_naive(const __grid_constant__ SoftmaxProblem p) {
  // [row]
  const std::int64_t row = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (row >= p.rows.rows) return;
  // [/row]
  const std::int64_t n = p.rows.columns;
  const float* x = static_cast<const float*>(p.x) + p.rows.offset(0, row);
  float* y = static_cast<float*>(p.y) + p.rows.offset(1, row);

  const tile::SplitScale s(p.scale);
  float row_max = -HUGE_VALF;
  for (std::int64_t i = 0; i < n; ++i) row_max = fmaxf(row_max, s.unit * x[i]);  // [find the maximum]

  float sum = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    const float e = expf((s.unit * x[i] - row_max) * s.rest);  // [read again]
    y[i] = e;                                                  // [write]
    sum += e;
  }
  for (std::int64_t i = 0; i < n; ++i) y[i] /= sum;  // [divide]
}

}  // namespace

Status launch_softmax_naive(const CudaLaunch& launch, const SoftmaxProblem& p) {
  if (p.rows.rows <= 0 || p.rows.columns <= 0) return {};
  const auto blocks = static_cast<unsigned>((p.rows.rows + kThreads - 1) / kThreads);
  return cuda::launch(launch, "softmax", {blocks, kThreads}, softmax_naive, p);
}

}  // namespace rooftile::ladder
