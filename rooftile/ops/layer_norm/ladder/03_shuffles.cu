// Idea: the threads of a warp read each other's registers: five shuffles add 32 values up.
// Changed: 02_block's tree. Eight warps leave one sum each in shared memory, and one barrier is left of nine.
// Binds: bytes. The row is read three times where once would do, and a long row has left the first cache by
// then. Next: the row stays in registers.
#include <cmath>

#include "rooftile/backend/cuda/launch.h"
#include "rooftile/ops/layer_norm/ladder/gpu_row.h"

namespace rooftile::ladder {
using namespace layer_norm_gpu;
namespace {

constexpr int kThreads = 256, kWarps = kThreads / 32;

/// The sum over the block: each thread with the one whose number differs in one bit, so that all have the
/// same bits; then the warps' sums in the same way.
template <int kSum>
__device__ float by_shuffles(float mine) {
  ROOFTILE_SHARED(part, float[kWarps]);
  const int t = static_cast<int>(threadIdx.x);
  // [shuffles]
  for (int far = 16; far > 0; far /= 2) mine += __shfl_xor_sync(0xffffffffu, mine, far);
  if (t % 32 == 0) part[t / 32] = mine;  // [a warp's]
  __syncthreads();
  mine = part[t % kWarps];  // [all warps']
  for (int far = kWarps / 2; far > 0; far /= 2) mine += __shfl_xor_sync(0xffffffffu, mine, far);
  return mine;
  // [/shuffles]
}

__global__ void __launch_bounds__(kThreads) layer_norm_shuffles(const __grid_constant__ LayerNormProblem p) {
  const GpuRow at(p, blockIdx.x);
  const float count = static_cast<float>(at.n);

  float sum = 0;
  for (std::int64_t i = threadIdx.x; i < at.n; i += kThreads) sum += at.x[i];  // [for the mean]
  const float mean = by_shuffles<0>(sum) / count;

  float squares = 0;
  for (std::int64_t i = threadIdx.x; i < at.n; i += kThreads) {
    const float d = at.x[i] - mean;  // [for the variance]
    squares += d * d;
  }
  const float rstd = 1 / sqrtf(by_shuffles<1>(squares) / count + p.eps());

  for (std::int64_t i = threadIdx.x; i < at.n; i += kThreads) {
    const float normal = (at.x[i] - mean) * rstd;  // [read again]
    at.y[i] = normal * at.weight[i] + at.bias[i];  // [write]
  }
  if (threadIdx.x == 0) at.store_statistics(mean, rstd);
}

}  // namespace

Status launch_layer_norm_shuffles(const CudaLaunch& launch, const LayerNormProblem& p) {
  if (p.rows.rows <= 0) return {};
  const auto blocks = static_cast<unsigned>(p.rows.rows);
  return cuda::launch(launch, "layer_norm", {blocks, kThreads}, layer_norm_shuffles, p);
}

}  // namespace rooftile::ladder
