// Idea: a block takes 32x32 elements through shared memory: rows of x go in, columns come out as rows of y.
// Changed: each thread reads one element and writes another one, which a thread of its block read.
// Binds: shared memory. A column's 32 elements lie 32 words apart, all in one of the 32 banks, which gives
//   one word in a pass: a warp's read takes 32 passes.
// Next: one column more, which nobody uses.
#include "rooftile/backend/cuda/launch.h"
#include "rooftile/backend/cuda/shared.h"
#include "rooftile/ops/transpose/ladder/ladder.h"

namespace rooftile::ladder {
namespace {

__global__ void transpose_shared(const float* x, float* y, int m, int n) {
  ROOFTILE_SHARED(tile, float[32][32]);
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

Status launch_shared(const CudaLaunch& launch, const TransposeProblem& p) {
  if (p.size() == 0) return {};
  const auto blocks = [](std::int64_t size) { return static_cast<unsigned>((size + 31) / 32); };
  return cuda::launch(launch, "transpose", {{blocks(p.n), blocks(p.m)}, {32, 32}}, transpose_shared,
                      static_cast<const float*>(p.x), static_cast<float*>(p.y), static_cast<int>(p.m),
                      static_cast<int>(p.n));
}

}  // namespace rooftile::ladder
