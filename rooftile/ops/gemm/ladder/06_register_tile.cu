// Idea: a thread computes 8x8 elements of y: 8 of a column of A and 8 of a row of B, once in registers, make
// 64
//   fma. The sums stay in registers from the first of K to the last.
// Changed: 128x128 elements a block of 256 threads. 16 loads from shared memory for 64 fma, instead of 72.
// Binds: instructions, of 4 bytes each, and banks: lanes that read a row of B are 8 floats apart, in 4 banks.
// Next: 16 bytes per load, and the tile of A turned and padded.
#include "rooftile/backend/cuda/shared.h"
#include "rooftile/backend/cuda/unroll.h"
#include "rooftile/ops/gemm/ladder/ladder_gpu.h"

namespace rooftile::ladder {
namespace {
constexpr int kSide = 128, kDepth = 8, kEdge = 8, kThreads = kSide * kSide / (kEdge * kEdge);

// [kernel]
__global__ void __launch_bounds__(kThreads)
    gemm_register_tile(const float* a, const float* b, float* y, int m, int n, int k) {
  ROOFTILE_SHARED(a_tile, float[kSide][kDepth]);
  ROOFTILE_SHARED(b_tile, float[kDepth][kSide]);
  const int t = static_cast<int>(threadIdx.x);
  const int first_i = static_cast<int>(blockIdx.y) * kSide, first_j = static_cast<int>(blockIdx.x) * kSide;
  const int row = t / 16 * kEdge, column = t % 16 * kEdge;
  float sum[kEdge][kEdge] = {};
  for (int first = 0; first < k; first += kDepth) {
    ROOFTILE_UNROLL for (int e = t; e < kSide * kDepth; e += kThreads) {
      const int i = first_i + e / kDepth, in_a = first + e % kDepth;
      const int j = first_j + e % kSide, in_b = first + e / kSide;
      a_tile[e / kDepth][e % kDepth] = i < m && in_a < k ? a[std::int64_t{i} * k + in_a] : 0;  // [a]
      b_tile[e / kSide][e % kSide] = in_b < k && j < n ? b[std::int64_t{in_b} * n + j] : 0;    // [b]
    }
    __syncthreads();
    // [product]
    ROOFTILE_UNROLL for (int p = 0; p < kDepth; ++p) {
      float left[kEdge], right[kEdge];
      ROOFTILE_UNROLL for (int r = 0; r < kEdge; ++r) left[r] = a_tile[row + r][p];
      ROOFTILE_UNROLL for (int c = 0; c < kEdge; ++c) right[c] = b_tile[p][column + c];
      ROOFTILE_UNROLL for (int r = 0; r < kEdge; ++r) {
        ROOFTILE_UNROLL for (int c = 0; c < kEdge; ++c) sum[r][c] = fmaf(left[r], right[c], sum[r][c]);
      }
    }
    // [/product]
    __syncthreads();
  }
  ROOFTILE_UNROLL for (int r = 0; r < kEdge; ++r) {
    ROOFTILE_UNROLL for (int c = 0; c < kEdge; ++c) {
      const int i = first_i + row + r, j = first_j + column + c;
      if (i < m && j < n) y[std::int64_t{i} * n + j] = sum[r][c];  // [y]
    }
  }
}
// [/kernel]

}  // namespace

Status launch_gemm_register_tile(const CudaLaunch& launch, const GemmProblem& p) {
  return launch_gemm(launch, p, {{tiles_of(p.n, kSide), tiles_of(p.m, kSide)}, kThreads}, gemm_register_tile);
}

}  // namespace rooftile::ladder
