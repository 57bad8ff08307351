// Idea: a thread for each row, and in it three loops, exactly as the equations read.
// Changed: this is the first rung.
// Binds: requests. A warp's 32 threads read a row's length apart, so each request is for 32 sectors of 32
// bytes and uses 4 bytes of each; and there are as few threads as rows. Next: neighbours take neighbouring
// elements.
#include <cmath>

#include "rooftile/backend/cuda/launch.h"
#include "rooftile/ops/layer_norm/ladder/gpu_row.h"

namespace rooftile::ladder {
using namespace layer_norm_gpu;
namespace {

constexpr int kThreads = 128;

__global__ void layer_norm_naive(const __grid_constant__ LayerNormProblem p) {
  const std::int64_t row = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (row >= p.rows.rows) return;
  const GpuRow at(p, row);
  const double count = static_cast<double>(at.n);

  // [sums]
  double sum = 0;  // one by one, thousands of floats would lose digits
  for (std::int64_t i = 0; i < at.n; ++i) sum += double(at.x[i]);  // [for the mean]
  const float mean = static_cast<float>(sum / count);

  double squares = 0;
  for (std::int64_t i = 0; i < at.n; ++i) {
    const float d = at.x[i] - mean;  // [for the variance]
    squares += double(d) * double(d);
  }
  const float rstd = 1 / sqrtf(static_cast<float>(squares / count) + p.eps());
  // [/sums]

  for (std::int64_t i = 0; i < at.n; ++i) {
    const float normal = (at.x[i] - mean) * rstd;  // [read again]
    at.y[i] = normal * at.weight[i] + at.bias[i];  // [write]
  }
  at.store_statistics(mean, rstd);
}

}  // namespace

Status launch_layer_norm_naive(const CudaLaunch& launch, const LayerNormProblem& p) {
  if (p.rows.rows <= 0) return {};
  const auto blocks = static_cast<unsigned>((p.rows.rows + kThreads - 1) / kThreads);
  return cuda::launch(launch, "layer_norm", {blocks, kThreads}, layer_norm_naive, p);
}

}  // namespace rooftile::ladder
