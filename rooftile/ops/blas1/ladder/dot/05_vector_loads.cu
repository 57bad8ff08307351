// Idea: 16 bytes a load, and eight loads on their way before the first product.
// Changed: sum_of_words (dot_gpu.h) in place of the loop; the last n % 4 elements go one to a thread. Vectors
//   that do not begin at a multiple of 16 bytes are refused.
// Binds: the grid: 1024 blocks whatever the GPU, which idles at the end where it holds no whole share of
//   them; and a thread's chain of additions grows with n, and its error with it.
// Next: blocks that follow from n alone, and a second pass by more than one thread.
#include "rooftile/ops/blas1/ladder/dot/dot_gpu.h"

namespace rooftile::ladder {
namespace {

__global__ void dot_vector_loads(const float* x, const float* y, std::int64_t n, float* sums) {
  const std::int64_t words = n / 4, step = std::int64_t{gridDim.x} * blockDim.x;
  const std::int64_t first = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  float sum = sum_of_words(x, y, words, first, step);
  const std::int64_t last = 4 * words + first;
  if (last < n) sum += x[last] * y[last];
  sum = block_sum(sum);
  if (threadIdx.x == 0) sums[blockIdx.x] = sum;
}

}  // namespace

Status launch_dot_vector_loads(const CudaLaunch& launch, const DotProblem& p) {
  return launch_block_sums(launch, p, (p.rows.columns + 3) / 4, dot_vector_loads);
}

}  // namespace rooftile::ladder
