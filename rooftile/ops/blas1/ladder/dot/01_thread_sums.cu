// Idea: 16384 threads, a sum in each: the vector cut into as many shares, as one would for a CPU's cores.
// Changed: this is the first rung. Its second launch, in which one thread adds the sums, serves the next
//   four.
// Binds: sectors. Lanes read a share apart: a warp's load touches 32 sectors of 32 bytes for 4 bytes of each.
// Next: lanes that read neighbours.
#include "rooftile/ops/blas1/ladder/dot/dot_gpu.h"

namespace rooftile::ladder {
namespace {

constexpr int kBlocks = kMaxSums / kDotThreads;

// [kernel]
__global__ void dot_thread_sums(const float* x, const float* y, std::int64_t n, float* sums) {
  const unsigned thread = blockIdx.x * blockDim.x + threadIdx.x, threads = gridDim.x * blockDim.x;
  const std::int64_t share = (n + threads - 1) / threads, first = thread * share;
  const std::int64_t end = first + share < n ? first + share : n;
  float sum = 0;
  for (std::int64_t i = first; i < end; ++i) sum += x[i] * y[i];
  sums[thread] = sum;
}
// [/kernel]

}  // namespace

Status launch_dot_thread_sums(const CudaLaunch& launch, const DotProblem& p) {
  const Status status = cuda::launch(
      launch, "dot", {kBlocks, kDotThreads}, dot_thread_sums, static_cast<const float*>(p.data[0]),
      static_cast<const float*>(p.data[1]), p.rows.columns, static_cast<float*>(launch.scratch));
  return status ? launch_add_sums(launch, p, kMaxSums) : status;
}

}  // namespace rooftile::ladder
