// Idea: two tiles in shared memory. While one is computed, the next is copied by cp.async, which no register
//   passes and no thread waits for before the tile is done.
// Changed: A is turned on the way, 4 bytes per copy: lanes 0 to 7 copy 8 of K of one row, 32 bytes, into 8
// rows
//   of the tile, 132 floats apart: 8 other banks. One barrier per tile instead of two.
// Binds: fma, at last: 64 of them for four loads of 16 bytes from shared memory.
// Next: an instruction that multiplies whole tiles.
#include "rooftile/backend/cuda/ptx.h"
#include "rooftile/backend/cuda/shared.h"
#include "rooftile/backend/cuda/unroll.h"
#include "rooftile/ops/gemm/ladder/ladder_gpu.h"

namespace rooftile::ladder {
namespace {
constexpr int kSide = 128, kDepth = 8, kPitch = kSide + 4, kThreads = 256;
using Tiles = float[2][kDepth][kPitch];  // A's, turned, and B's

// [copy]
__device__ void copy_tiles(Tiles& to, const float* a, const float* b, int m, int n, int k, int first_i,
                           int first_j, int first) {
  const int t = static_cast<int>(threadIdx.x);
  const int depth = t % kDepth, p = first + depth;
  ROOFTILE_UNROLL for (int r = 0; r < 4; ++r) {
    const int row = r * 32 + t / kDepth, i = first_i + row;
    const bool inside = i < m && p < k;
    cuda::cp_async<4>(&to[0][depth][row], inside ? a + std::int64_t{i} * k + p : a, inside ? 4 : 0);
  }
  const int row = first + t / 32, column = t % 32 * 4;
  const bool inside = row < k && first_j + column < n;
  cuda::cp_async_16(&to[1][t / 32][column], inside ? b + std::int64_t{row} * n + first_j + column : b,
                    inside ? 16 : 0);
}
// [/copy]

__global__ void __launch_bounds__(kThreads)
    gemm_double_buffered(const float* a, const float* b, float* y, int m, int n, int k) {
  ROOFTILE_SHARED(tiles, Tiles[2]);
  const int t = static_cast<int>(threadIdx.x);
  const int first_i = static_cast<int>(blockIdx.y) * kSide, first_j = static_cast<int>(blockIdx.x) * kSide;
  const int row = t / 16 * 4, column = t % 16 * 4;  // and 64 further
  float sum[8][8] = {};
  // [loop]
  copy_tiles(tiles[0], a, b, m, n, k, first_i, first_j, 0);
  cuda::cp_async_commit();
  for (int first = 0; first < k; first += kDepth) {
    const int now = first / kDepth % 2;
    cuda::cp_async_wait<0>();
    __syncthreads();  // the tile is here for all, and all are done with the other one
    if (first + kDepth < k) copy_tiles(tiles[1 - now], a, b, m, n, k, first_i, first_j, first + kDepth);
    cuda::cp_async_commit();
    // [/loop]
    ROOFTILE_UNROLL for (int p = 0; p < kDepth; ++p) {
      float lefts[8], rights[8];
      ROOFTILE_UNROLL for (int half = 0; half < 2; ++half) {
        const float4 l = *reinterpret_cast<const float4*>(&tiles[now][0][p][64 * half + row]);
        const float4 r = *reinterpret_cast<const float4*>(&tiles[now][1][p][64 * half + column]);
        lefts[4 * half] = l.x, lefts[4 * half + 1] = l.y, lefts[4 * half + 2] = l.z,
                  lefts[4 * half + 3] = l.w;
        rights[4 * half] = r.x, rights[4 * half + 1] = r.y, rights[4 * half + 2] = r.z,
                   rights[4 * half + 3] = r.w;
      }
      ROOFTILE_UNROLL for (int r = 0; r < 8; ++r) {
        ROOFTILE_UNROLL for (int c = 0; c < 8; ++c) sum[r][c] = fmaf(lefts[r], rights[c], sum[r][c]);
      }
    }
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

}  // namespace

Status launch_gemm_double_buffered(const CudaLaunch& launch, const GemmProblem& p) {
  return launch_gemm(launch, p, {{tiles_of(p.n, kSide), tiles_of(p.m, kSide)}, kThreads},
                     gemm_double_buffered);
}

}  // namespace rooftile::ladder
