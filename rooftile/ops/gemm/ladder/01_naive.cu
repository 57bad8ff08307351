// Idea: one thread for each element of y: a row of A times a column of B.
// Changed: -
// Binds: sectors. A warp's 32 lanes are 32 rows: each request for A takes 32 sectors of which it uses 4
// bytes,
//   and each element of y is a sector of its own.
// Next: lanes of a warp side by side in a row of y.
#include "rooftile/ops/gemm/ladder/ladder_gpu.h"

namespace rooftile::ladder {
namespace {

// [kernel]
__global__ void gemm_naive(const float* a, const float* b, float* y, int m, int n, int k) {
  const int i = static_cast<int>(blockIdx.x * 32 + threadIdx.x);
  const int j = static_cast<int>(blockIdx.y * 32 + threadIdx.y);
  if (i >= m || j >= n) return;
  float sum = 0;
  for (int p = 0; p < k; ++p) {
    const float left = a[std::int64_t{i} * k + p];   // [a]
    const float right = b[std::int64_t{p} * n + j];  // [b]
    sum = fmaf(left, right, sum);
  }
  y[std::int64_t{i} * n + j] = sum;  // [y]
}
// [/kernel]

}  // namespace

Status launch_gemm_naive(const CudaLaunch& launch, const GemmProblem& p) {
  return launch_gemm(launch, p, {{tiles_of(p.m, 32), tiles_of(p.n, 32)}, {32, 32}}, gemm_naive);
}

}  // namespace rooftile::ladder
