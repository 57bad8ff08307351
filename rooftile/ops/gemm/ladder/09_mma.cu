// Idea: a warp multiplies 16x16 by 16x8 elements of bf16 in one instruction, mma.sync: 2048 fma. Its operands
//   lie over the registers of 32 lanes, and ldmatrix brings them there: B turned on the way (.trans).
// Changed: bf16, sums in f32; 128x128 elements a block, 64x32 a warp; four tiles in the ring, three in
// flight.
//   No padding: word w of row r lies at w ^ s(r), a swizzle, so that rows stay whole words of 16 bytes.
// Binds: shared memory: 3 KB of fragments for each 64x32x16 product of a warp.
// Next: the library's kernel: larger tiles, fragments loaded one step ahead, any shape and order. On Hopper,
//   wgmma, which reads shared memory itself.
#include <cuda_bf16.h>

#include "rooftile/backend/cuda/ptx.h"
#include "rooftile/backend/cuda/shared.h"
#include "rooftile/backend/cuda/unroll.h"
#include "rooftile/ops/gemm/ladder/ladder_gpu.h"

namespace rooftile::ladder {
namespace {
constexpr int kSide = 128, kDepth = 32, kStages = 4, kThreads = 256;
constexpr int kAWords = kDepth / 8, kBWords = kSide / 8;  // of 16 bytes in a row of each tile

struct Tiles {
  uint4 a[kSide][kAWords];   // rows of K
  uint4 b[kDepth][kBWords];  // rows of N
};
// [swizzle]
// Eight rows that ldmatrix reads at once lie in eight different groups of four banks.
__device__ int a_place(int row, int word) { return word ^ row / 2 % 4; }  // two rows in 128 bytes
__device__ int b_place(int row, int word) { return word ^ row % 8; }      // two times 128 bytes in a row
// [/swizzle]

__device__ void copy_tiles(Tiles& to, const bf16* a, const bf16* b, int m, int n, int k, int first_i,
                           int first_j, int first) {
  const int t = static_cast<int>(threadIdx.x);
  ROOFTILE_UNROLL for (int e = t; e < kSide * kAWords; e += kThreads) {
    const int row = e / kAWords, word = e % kAWords, i = first_i + row, p = first + word * 8;
    const bool inside = i < m && p < k;
    cuda::cp_async_16(&to.a[row][a_place(row, word)], inside ? a + std::int64_t{i} * k + p : a,
                      inside ? 16 : 0);
  }
  ROOFTILE_UNROLL for (int e = t; e < kDepth * kBWords; e += kThreads) {
    const int row = e / kBWords, word = e % kBWords, p = first + row, j = first_j + word * 8;
    const bool inside = p < k && j < n;
    cuda::cp_async_16(&to.b[row][b_place(row, word)], inside ? b + std::int64_t{p} * n + j : b,
                      inside ? 16 : 0);
  }
}

__global__ void __launch_bounds__(kThreads)
    gemm_mma_rung(const bf16* a, const bf16* b, bf16* y, int m, int n, int k) {
  ROOFTILE_DYNAMIC_SHARED(bytes);
  Tiles* const ring = reinterpret_cast<Tiles*>(bytes);
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  const int first_i = static_cast<int>(blockIdx.y) * kSide, first_j = static_cast<int>(blockIdx.x) * kSide;
  const int warp_i = warp / 4 * 64, warp_j = warp % 4 * 32;
  const int stages = (k + kDepth - 1) / kDepth;
  float sum[4][4][4] =
      {};  // 4x4 products of 16x8: row lane / 4 and 8 below, columns 2(lane % 4) and the next

  for (int s = 0; s < kStages - 1; ++s) {
    if (s < stages) copy_tiles(ring[s], a, b, m, n, k, first_i, first_j, s * kDepth);
    cuda::cp_async_commit();
  }
  for (int s = 0; s < stages; ++s) {
    cuda::cp_async_wait<kStages - 2>();
    __syncthreads();  // the tile is here for all, and all are done with the one before
    const int next = s + kStages - 1;
    if (next < stages) copy_tiles(ring[next % kStages], a, b, m, n, k, first_i, first_j, next * kDepth);
    cuda::cp_async_commit();
    const Tiles& tile = ring[s % kStages];
    // [product]
    ROOFTILE_UNROLL for (int step = 0; step < kDepth / 16; ++step) {
      unsigned left[4][4], right[2][4];
      ROOFTILE_UNROLL for (int i = 0; i < 4; ++i) {  // 16 rows, 16 of K
        const int row = warp_i + i * 16 + lane % 16, word = step * 2 + lane / 16;
        cuda::load_matrix(left[i], &tile.a[row][a_place(row, word)]);
      }
      ROOFTILE_UNROLL for (int j = 0; j < 2; ++j) {  // 16 of K, 16 columns
        const int row = step * 16 + lane % 16, word = warp_j / 8 + j * 2 + lane / 16;
        cuda::load_matrix<true>(right[j], &tile.b[row][b_place(row, word)]);
      }
      ROOFTILE_UNROLL for (int i = 0; i < 4; ++i) {
        ROOFTILE_UNROLL for (int j = 0; j < 4; ++j) {
          const unsigned columns[2] = {right[j / 2][j % 2 * 2], right[j / 2][j % 2 * 2 + 1]};
          cuda::mma_bf16(sum[i][j], left[i], columns);
        }
      }
    }
    // [/product]
  }
  ROOFTILE_UNROLL for (int i = 0; i < 4; ++i) {
    ROOFTILE_UNROLL for (int j = 0; j < 4; ++j) {
      ROOFTILE_UNROLL for (int half = 0; half < 2; ++half) {
        const int row = first_i + warp_i + i * 16 + half * 8 + lane / 4;
        const int column = first_j + warp_j + j * 8 + lane % 4 * 2;
        if (row < m && column < n)  // n is even: both columns
          *reinterpret_cast<__nv_bfloat162*>(y + std::int64_t{row} * n + column) =
              __floats2bfloat162_rn(sum[i][j][2 * half], sum[i][j][2 * half + 1]);  // [y]
      }
    }
  }
}

}  // namespace

Status launch_gemm_mma(const CudaLaunch& launch, const GemmProblem& p) {
  return launch_gemm(launch, p,
                     {{tiles_of(p.n, kSide), tiles_of(p.m, kSide)}, kThreads, kStages * sizeof(Tiles)},
                     gemm_mma_rung);
}

}  // namespace rooftile::ladder
