// Idea: in a tile with rows of 33 words a column's neighbours lie 33 words apart, one bank further each.
// Changed: a 33 for a 32. Rows go in as before; a column comes out in one pass.
// Binds: waiting for memory. A thread has 4 bytes on their way, and then a whole block meets at a barrier.
// Next: words of 16 bytes, four to a thread.
#include "rooftile/backend/cuda/launch.h"
#include "rooftile/backend/cuda/shared.h"
#include "rooftile/ops/transpose/ladder/ladder.h"

namespace rooftile::ladder {
namespace {

__global__ void transpose_padded(const float* x, float* y, int m, int n) {
  ROOFTILE_SHARED(tile, float[32][33]);
  const int first_i = static_cast<int>(blockIdx.y * 32), first_j = static_cast<int>(blockIdx.x * 32);
  const int lane = static_cast<int>(threadIdx.x), row = static_cast<int>(threadIdx.y);
  if (first_i + row < m && first_j + lane < n) {
    const float value = x[std::int64_t{first_i + row} * n + first_j + lane];  // [load]
    tile[row][lane] = value;                                                  // [in]
  }
  __syncthreads();
  if (first_j + row < n && first_i + lane < m) {
    const float value = tile[lane][row];                          // [out]
    y[std::int64_t{first_j + row} * m + first_i + lane] = value;  // [store]
  }
}

}  // namespace

Status launch_padded(const CudaLaunch& launch, const TransposeProblem& p) {
  if (p.size() == 0) return {};
  const auto blocks = [](std::int64_t size) { return static_cast<unsigned>((size + 31) / 32); };
  return cuda::launch(launch, "transpose", {{blocks(p.n), blocks(p.m)}, {32, 32}}, transpose_padded,
                      static_cast<const float*>(p.x), static_cast<float*>(p.y), static_cast<int>(p.m),
                      static_cast<int>(p.n));
}

}  // namespace rooftile::ladder
