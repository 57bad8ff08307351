// Idea: a block computes 32x32 elements of y from 32 rows of A and 32 columns of B. It brings 32 of K at a
//   time into shared memory; each element, once there, is used 32 times.
// Changed: 2 loads from memory per thread and 32 fma, instead of 64. Past the ends, zeros.
// Binds: shared memory. Still two loads for each fma, now from there.
// Next: the tile's side as a parameter.
#include "rooftile/backend/cuda/shared.h"
#include "rooftile/ops/gemm/ladder/ladder_gpu.h"

namespace rooftile::ladder {
namespace {

// [kernel]
__global__ void gemm_shared(const float* a, const float* b, float* y, int m, int n, int k) {
  ROOFTILE_SHARED(a_tile, float[32][32]);
  ROOFTILE_SHARED(b_tile, float[32][32]);
  const int row = static_cast<int>(threadIdx.y), column = static_cast<int>(threadIdx.x);
  const int i = static_cast<int>(blockIdx.y) * 32 + row, j = static_cast<int>(blockIdx.x) * 32 + column;
  float sum = 0;
  for (int first = 0; first < k; first += 32) {
    const int in_a = first + column, in_b = first + row;
    a_tile[row][column] = i < m && in_a < k ? a[std::int64_t{i} * k + in_a] : 0;  // [a]
    b_tile[row][column] = in_b < k && j < n ? b[std::int64_t{in_b} * n + j] : 0;  // [b]
    __syncthreads();
    for (int p = 0; p < 32; ++p) sum = fmaf(a_tile[row][p], b_tile[p][column], sum);  // [product]
    __syncthreads();  // all have read before the next tiles come
  }
  if (i < m && j < n) y[std::int64_t{i} * n + j] = sum;  // [y]
}
// [/kernel]

}  // namespace

Status launch_gemm_shared(const CudaLaunch& launch, const GemmProblem& p) {
  return launch_gemm(launch, p, {{tiles_of(p.n, 32), tiles_of(p.m, 32)}, {32, 32}}, gemm_shared);
}

}  // namespace rooftile::ladder
