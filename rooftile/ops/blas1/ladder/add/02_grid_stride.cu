// Idea: a grid as large as the GPU, not as the data; threads go on by as many elements as there are threads.
// Changed: 01_one_element's `if` became a loop. One grid takes any n, and each block is started once.
// Binds: waiting. z may be x, so the compiler leaves a step's loads behind the store before: 8 bytes on their
//   way.
// Next: more bytes with each load.
#include "rooftile/backend/cuda/launch.h"
#include "rooftile/ops/blas1/ladder/ladder.h"

namespace rooftile::ladder {
namespace {

// [kernel]
__global__ void add_grid_stride(const float* x, const float* y, float* z, std::int64_t n) {
  const std::int64_t step = std::int64_t{gridDim.x} * blockDim.x;
  std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  for (; i < n; i += step) z[i] = x[i] + y[i];
}
// [/kernel]

}  // namespace

Status launch_add_grid_stride(const CudaLaunch& launch, const AddProblem& p) {
  constexpr int kThreads = 256;
  const std::int64_t n = p.rows.columns;
  if (n == 0) return {};
  return cuda::launch(launch, "add", {grid_of(launch, n, kThreads), kThreads}, add_grid_stride,
                      static_cast<const float*>(p.x), static_cast<const float*>(p.y),
                      static_cast<float*>(p.z), n);
}

}  // namespace rooftile::ladder
