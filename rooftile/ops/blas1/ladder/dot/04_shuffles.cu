// Idea: lanes of a warp read each other's registers: 5 shuffles make 32 sums one, without memory or barrier.
// Changed: block_sum (dot_gpu.h) in place of the tree: 10 shuffles, one barrier, 8 sums in shared memory.
// Binds: the loads. A block's tree runs once, and counts for little where each thread adds many elements.
// Next: more bytes on their way.
#include "rooftile/ops/blas1/ladder/dot/dot_gpu.h"

namespace rooftile::ladder {
namespace {

__global__ void dot_shuffles(const float* x, const float* y, std::int64_t n, float* sums) {
  const std::int64_t step = std::int64_t{gridDim.x} * blockDim.x;
  float sum = 0;
  for (std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < n; i += step)
    sum += x[i] * y[i];
  sum = block_sum(sum);
  if (threadIdx.x == 0) sums[blockIdx.x] = sum;
}

}  // namespace

Status launch_dot_shuffles(const CudaLaunch& launch, const DotProblem& p) {
  return launch_block_sums(launch, p, p.rows.columns, dot_shuffles);
}

}  // namespace rooftile::ladder
