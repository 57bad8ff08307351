// Idea: neighbouring lanes take neighbouring elements of a row of y.
// Changed: threadIdx.x counts columns instead of rows. A request for B is 4 sectors that are used whole; one
//   for A is one element that all lanes read.
// Binds: loads. Two of them for each fma: 4 bytes per flop from L1 and L2.
// Next: what a block reads 32 times over, it keeps in shared memory.
#include "rooftile/ops/gemm/ladder/ladder_gpu.h"

namespace rooftile::ladder {
namespace {

// [kernel]
__global__ void gemm_coalesced(const float* a, const float* b, float* y, int m, int n, int k) {
  const int i = static_cast<int>(blockIdx.y * 32 + threadIdx.y);
  const int j = static_cast<int>(blockIdx.x * 32 + threadIdx.x);
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

Status launch_gemm_coalesced(const CudaLaunch& launch, const GemmProblem& p) {
  return launch_gemm(launch, p, {{tiles_of(p.n, 32), tiles_of(p.m, 32)}, {32, 32}}, gemm_coalesced);
}

}  // namespace rooftile::ladder
