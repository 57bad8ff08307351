// Idea: a block's registers hold a row, 16 elements a thread: it is read once. The second pass, about the
// exact mean, costs no memory; so there is no need for a shift, of Welford's update, or of E[h²] - E[h]².
// Changed: the passes are over registers; a block has as many threads as hold the row, at most 1024.
// Binds: bytes, two units, in requests of 128 bytes. Next: requests of 512 bytes.
#include <cmath>

#include "rooftile/backend/cuda/launch.h"
#include "rooftile/ops/layer_norm/ladder/gpu_row.h"

namespace rooftile::ladder {
using namespace layer_norm_gpu;
namespace {

__global__ void __launch_bounds__(kMaxThreads)
    layer_norm_registers(const __grid_constant__ LayerNormProblem p) {
  const GpuRow at(p, blockIdx.x);
  const int n = static_cast<int>(at.n), threads = static_cast<int>(blockDim.x);
  const int t = static_cast<int>(threadIdx.x);
  const float count = static_cast<float>(n);

  // [registers]
  float row[kItemsPerThread];
  ROOFTILE_UNROLL for (int k = 0; k < kItemsPerThread; ++k) {
    const int i = k * threads + t;
    row[k] = i < n ? at.x[i] : 0;  // [read]
  }

  float sum = 0;
  ROOFTILE_UNROLL for (int k = 0; k < kItemsPerThread; ++k) sum += row[k];
  const float mean = sum_of_block<0>(sum) / count;

  float squares = 0;
  ROOFTILE_UNROLL for (int k = 0; k < kItemsPerThread; ++k) {
    const float d = k * threads + t < n ? row[k] - mean : 0;  // past the end is no part of the variance
    squares += d * d;
  }
  const float rstd = 1 / sqrtf(sum_of_block<1>(squares) / count + p.eps());
  // [/registers]

  ROOFTILE_UNROLL for (int k = 0; k < kItemsPerThread; ++k) {
    const int i = k * threads + t;
    if (i >= n) continue;
    const float w = at.weight[i];              // [weight]
    const float b = at.bias[i];                // [bias]
    at.y[i] = (row[k] - mean) * rstd * w + b;  // [write]
  }
  if (t == 0) at.store_statistics(mean, rstd);
}

}  // namespace

Status launch_layer_norm_registers(const CudaLaunch& launch, const LayerNormProblem& p) {
  if (p.rows.rows <= 0) return {};
  const auto blocks = static_cast<unsigned>(p.rows.rows);
  const auto warps =
      static_cast<unsigned>((p.rows.columns + 32 * kItemsPerThread - 1) / (32 * kItemsPerThread));
  return cuda::launch(launch, "layer_norm", {blocks, 32 * (warps > 0 ? warps : 1)}, layer_norm_registers, p);
}

}  // namespace rooftile::ladder
