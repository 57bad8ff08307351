// Idea: the lanes of a warp read neighbours: thread t takes elements t, t + 16384, t + 32768, …
// Changed: only the loop. What lay side by side in one thread's share now lies side by side in a warp.
// Binds: the end: one thread adds 16384 sums, one after another. More threads would leave it more to add.
// Next: a block adds its threads' sums together.
#include "rooftile/ops/blas1/ladder/dot/dot_gpu.h"

namespace rooftile::ladder {
namespace {

constexpr int kBlocks = kMaxSums / kDotThreads;

// [kernel]
__global__ void dot_neighbours(const float* x, const float* y, std::int64_t n, float* sums) {
  const unsigned thread = blockIdx.x * blockDim.x + threadIdx.x, threads = gridDim.x * blockDim.x;
  float sum = 0;
  for (std::int64_t i = thread; i < n; i += threads) sum += x[i] * y[i];
  sums[thread] = sum;
}
// [/kernel]

}  // namespace

Status launch_dot_neighbours(const CudaLaunch& launch, const DotProblem& p) {
  const Status status = cuda::launch(
      launch, "dot", {kBlocks, kDotThreads}, dot_neighbours, static_cast<const float*>(p.data[0]),
      static_cast<const float*>(p.data[1]), p.rows.columns, static_cast<float*>(launch.scratch));
  return status ? launch_add_sums(launch, p, kMaxSums) : status;
}

}  // namespace rooftile::ladder
