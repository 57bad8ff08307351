// Idea: a thread computes eight elements of a column of y. What it loads of B it uses for all eight.
// Changed: 64x64 elements a block of 512 threads, 8 of K at a time. 9 loads from shared memory for 8 fma,
//   instead of 16. Warps keep to two rows of the tile of A: one element for all lanes of a request.
// Binds: shared memory: more than one load per fma.
// Next: a square of elements per thread: 16 loads for 64 fma.
#include "rooftile/backend/cuda/shared.h"
#include "rooftile/backend/cuda/unroll.h"
#include "rooftile/ops/gemm/ladder/ladder_gpu.h"

namespace rooftile::ladder {
namespace {
constexpr int kSide = 64, kDepth = 8, kPerThread = 8, kThreads = kSide * kSide / kPerThread;

// [kernel]
__global__ void gemm_coarsened(const float* a, const float* b, float* y, int m, int n, int k) {
  ROOFTILE_SHARED(a_tile, float[kSide][kDepth]);
  ROOFTILE_SHARED(b_tile, float[kDepth][kSide]);
  const int t = static_cast<int>(threadIdx.x);
  const int first_i = static_cast<int>(blockIdx.y) * kSide, first_j = static_cast<int>(blockIdx.x) * kSide;
  const int column = t % kSide, row = t / kSide * kPerThread;  // the first of eight
  const int a_row = t / kDepth, a_column = t % kDepth;         // what this thread brings
  const int b_row = t / kSide, b_column = t % kSide;
  float sum[kPerThread] = {};
  for (int first = 0; first < k; first += kDepth) {
    const int i = first_i + a_row, in_a = first + a_column, in_b = first + b_row, j = first_j + b_column;
    a_tile[a_row][a_column] = i < m && in_a < k ? a[std::int64_t{i} * k + in_a] : 0;  // [a]
    b_tile[b_row][b_column] = in_b < k && j < n ? b[std::int64_t{in_b} * n + j] : 0;  // [b]
    __syncthreads();
    ROOFTILE_UNROLL for (int p = 0; p < kDepth; ++p) {
      const float right = b_tile[p][column];  // [once]
      ROOFTILE_UNROLL for (int r = 0; r < kPerThread; ++r) {
        sum[r] = fmaf(a_tile[row + r][p], right, sum[r]);  // [product]
      }
    }
    __syncthreads();
  }
  const int j = first_j + column;
  ROOFTILE_UNROLL for (int r = 0; r < kPerThread; ++r) {
    const int i = first_i + row + r;
    if (i < m && j < n) y[std::int64_t{i} * n + j] = sum[r];  // [y]
  }
}
// [/kernel]

}  // namespace

Status launch_gemm_coarsened(const CudaLaunch& launch, const GemmProblem& p) {
  return launch_gemm(launch, p, {{tiles_of(p.n, kSide), tiles_of(p.m, kSide)}, kThreads}, gemm_coarsened);
}

}  // namespace rooftile::ladder
