// Idea: a thread for each element. The loop over i is gone: the grid is the loop.
// Changed: this is the first rung; on the CPU it was 01_scalar's loop.
// Binds: bytes, all of them wanted: a warp's 32 neighbours read 128 bytes together. But a thread waits for
//   two loads, adds once and ends, and a new one must be started.
// Next: threads that stay, and take one element after another.
#include "rooftile/backend/cuda/launch.h"
#include "rooftile/ops/blas1/ladder/ladder.h"

namespace rooftile::ladder {
namespace {

// [kernel]
__global__ void add_one_element(const float* x, const float* y, float* z, std::int64_t n) {
  const std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i < n) z[i] = x[i] + y[i];
}
// [/kernel]

}  // namespace

// [launch]
Status launch_add_one_element(const CudaLaunch& launch, const AddProblem& p) {
  constexpr int kThreads = 256;
  constexpr std::int64_t kMaxBlocks = (std::int64_t{1} << 31) - 1;
  const std::int64_t n = p.rows.columns, blocks = (n + kThreads - 1) / kThreads;
  if (n == 0) return {};
  if (blocks > kMaxBlocks)
    return Status::error("add: 01_one_element takes up to %lld elements, these are %lld",
                         static_cast<long long>(kMaxBlocks * kThreads), static_cast<long long>(n));
  return cuda::launch(launch, "add", {static_cast<unsigned>(blocks), kThreads}, add_one_element,
                      static_cast<const float*>(p.x), static_cast<const float*>(p.y),
                      static_cast<float*>(p.z), n);
}
// [/launch]

}  // namespace rooftile::ladder
