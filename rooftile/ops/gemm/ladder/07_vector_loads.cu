// Idea: 16 bytes per load, from memory and from shared memory. For that the tile of A is turned: 8 of a
// column
//   of A then are neighbours, two loads of 16 bytes.
// Changed: rows of the turned tile are 132 floats, so that its stores meet no bank twice. A thread's 8 rows
// and
//   8 columns are two groups of four, 64 apart: lanes that read one row of B's tile read neighbours.
// Binds: latency. All wait for the tile's loads, then all compute, and memory waits.
// Next: the next tile is in flight while this one is computed.
#include "rooftile/backend/cuda/shared.h"
#include "rooftile/backend/cuda/unroll.h"
#include "rooftile/ops/gemm/ladder/ladder_gpu.h"

namespace rooftile::ladder {
namespace {
constexpr int kSide = 128, kDepth = 8, kPitch = kSide + 4, kThreads = 256;

// [kernel]
__global__ void __launch_bounds__(kThreads)
    gemm_vector_loads(const float* a, const float* b, float* y, int m, int n, int k) {
  ROOFTILE_SHARED(a_tile, float[kDepth][kPitch]);  // turned
  ROOFTILE_SHARED(b_tile, float[kDepth][kPitch]);
  const int t = static_cast<int>(threadIdx.x);
  const int first_i = static_cast<int>(blockIdx.y) * kSide, first_j = static_cast<int>(blockIdx.x) * kSide;
  const int row = t / 16 * 4, column = t % 16 * 4;  // and 64 further
  const int a_row = t / 2, a_column = t % 2 * 4;    // the four elements that this thread brings
  const int b_row = t / 32, b_column = t % 32 * 4;
  float sum[8][8] = {};
  for (int first = 0; first < k; first += kDepth) {
    float4 left{}, right{};
    if (first_i + a_row < m && first + a_column < k)
      left =
          *reinterpret_cast<const float4*>(a + std::int64_t{first_i + a_row} * k + first + a_column);  // [a]
    if (first + b_row < k && first_j + b_column < n)
      right =
          *reinterpret_cast<const float4*>(b + std::int64_t{first + b_row} * n + first_j + b_column);  // [b]
    // [turn]
    a_tile[a_column][a_row] = left.x;
    a_tile[a_column + 1][a_row] = left.y;
    a_tile[a_column + 2][a_row] = left.z;
    a_tile[a_column + 3][a_row] = left.w;
    *reinterpret_cast<float4*>(&b_tile[b_row][b_column]) = right;
    // [/turn]
    __syncthreads();
    ROOFTILE_UNROLL for (int p = 0; p < kDepth; ++p) {
      float lefts[8], rights[8];
      ROOFTILE_UNROLL for (int half = 0; half < 2; ++half) {
        const float4 l = *reinterpret_cast<const float4*>(&a_tile[p][64 * half + row]);
        const float4 r = *reinterpret_cast<const float4*>(&b_tile[p][64 * half + column]);
        lefts[4 * half] = l.x, lefts[4 * half + 1] = l.y, lefts[4 * half + 2] = l.z,
                  lefts[4 * half + 3] = l.w;
        rights[4 * half] = r.x, rights[4 * half + 1] = r.y, rights[4 * half + 2] = r.z,
                   rights[4 * half + 3] = r.w;
      }
      ROOFTILE_UNROLL for (int r = 0; r < 8; ++r) {
        ROOFTILE_UNROLL for (int c = 0; c < 8; ++c) sum[r][c] = fmaf(lefts[r], rights[c], sum[r][c]);
      }
    }
    __syncthreads();
  }
  ROOFTILE_UNROLL for (int r = 0; r < 8; ++r) {
    ROOFTILE_UNROLL for (int half = 0; half < 2; ++half) {
      const int i = first_i + row + r % 4 + r / 4 * 64, j = first_j + column + 64 * half;
      const float* s = &sum[r][4 * half];
      const float4 word{s[0], s[1], s[2], s[3]};
      if (i < m && j < n) *reinterpret_cast<float4*>(y + std::int64_t{i} * n + j) = word;  // [y]
    }
  }
}
// [/kernel]

}  // namespace

Status launch_gemm_vector_loads(const CudaLaunch& launch, const GemmProblem& p) {
  return launch_gemm(launch, p, {{tiles_of(p.n, kSide), tiles_of(p.m, kSide)}, kThreads}, gemm_vector_loads);
}

}  // namespace rooftile::ladder
