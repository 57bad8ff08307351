// Idea: the threads of a block meet in shared memory and add pairwise: after 8 steps 256 sums are one.
// Changed: a block leaves one sum, not 256: sixteen times the threads, a sixteenth of the sums. An atomicAdd
//   of each block's sum would spare the second launch, but adds in the order of arrival: other bits on each
//   run.
// Binds: the loads: a step waits for two. The tree costs 8 barriers, at which all warps of a block wait.
// Next: a tree with one barrier.
#include "rooftile/ops/blas1/ladder/dot/dot_gpu.h"

namespace rooftile::ladder {
namespace {

__global__ void dot_shared_memory(const float* x, const float* y, std::int64_t n, float* sums) {
  ROOFTILE_SHARED(part, float[kDotThreads]);
  const unsigned thread = threadIdx.x;
  const std::int64_t step = std::int64_t{gridDim.x} * blockDim.x;
  float sum = 0;
  for (std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + thread; i < n; i += step) sum += x[i] * y[i];
  // [tree]
  part[thread] = sum;
  __syncthreads();
  for (unsigned half = kDotThreads / 2; half > 0; half /= 2) {
    if (thread < half) part[thread] += part[thread + half];
    __syncthreads();
  }
  if (thread == 0) sums[blockIdx.x] = part[0];
  // [/tree]
}

}  // namespace

Status launch_dot_shared_memory(const CudaLaunch& launch, const DotProblem& p) {
  return launch_block_sums(launch, p, p.rows.columns, dot_shared_memory);
}

}  // namespace rooftile::ladder
