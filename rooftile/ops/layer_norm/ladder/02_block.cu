// Idea: a block for each row; neighbouring threads read neighbouring elements, and add up in shared memory.
// Changed: threads share a row. A warp's request now touches 4 sectors and uses every byte of them.
// Binds: waiting. A tree over 256 threads has nine barriers, and the variance cannot begin before the mean is
// known. Next: threads of a warp hand each other their sums without shared memory and without barriers.
#include <cmath>

#include "rooftile/backend/cuda/launch.h"
#include "rooftile/ops/layer_norm/ladder/gpu_row.h"

namespace rooftile::ladder {
using namespace layer_norm_gpu;
namespace {

constexpr int kThreads = 256;

/// The sum over the block, by a tree: the upper half is folded onto the lower until one is left. Each `kTree`
/// has memory of its own: who is early in the second must not overwrite what others still read of the first.
template <int kTree>
__device__ float tree(float mine) {
  ROOFTILE_SHARED(part, float[kThreads]);
  const int t = static_cast<int>(threadIdx.x);
  // [tree]
  part[t] = mine;  // [into the tree]
  __syncthreads();
  for (int half = kThreads / 2; half > 0; half /= 2) {
    if (t < half) part[t] += part[t + half];  // [fold]
    __syncthreads();
  }
  return part[0];  // [out of the tree]
  // [/tree]
}

__global__ void __launch_bounds__(kThreads) layer_norm_block(const __grid_constant__ LayerNormProblem p) {
  const GpuRow at(p, blockIdx.x);
  const float count = static_cast<float>(at.n);

  float sum = 0;
  for (std::int64_t i = threadIdx.x; i < at.n; i += kThreads) sum += at.x[i];  // [for the mean]
  const float mean = tree<0>(sum) / count;

  float squares = 0;
  for (std::int64_t i = threadIdx.x; i < at.n; i += kThreads) {
    const float d = at.x[i] - mean;  // [for the variance]
    squares += d * d;
  }
  const float rstd = 1 / sqrtf(tree<1>(squares) / count + p.eps());

  for (std::int64_t i = threadIdx.x; i < at.n; i += kThreads) {
    const float normal = (at.x[i] - mean) * rstd;  // [read again]
    at.y[i] = normal * at.weight[i] + at.bias[i];  // [write]
  }
  if (threadIdx.x == 0) at.store_statistics(mean, rstd);
}

}  // namespace

Status launch_layer_norm_block(const CudaLaunch& launch, const LayerNormProblem& p) {
  if (p.rows.rows <= 0) return {};
  const auto blocks = static_cast<unsigned>(p.rows.rows);
  return cuda::launch(launch, "layer_norm", {blocks, kThreads}, layer_norm_block, p);
}

}  // namespace rooftile::ladder
