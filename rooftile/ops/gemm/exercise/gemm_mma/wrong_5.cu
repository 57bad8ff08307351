// Wrong [banks]: rows of a are taken for 128 bytes long
#include <cuda_bf16.h>

#include "rooftile/backend/cuda/ptx.h"
#include "rooftile/backend/cuda/shared.h"
#include "rooftile/backend/cuda/unroll.h"
#include "rooftile/core/dtype.h"

using rooftile::bf16;
namespace cuda = rooftile::cuda;

/// 32 of K of a block's 64 rows and 64 columns, in words of 16 bytes: 8 elements.
struct Stage {
  uint4 a[64][4];  // rows of K
  uint4 b[32][8];  // rows of N
};

__device__ int place_a(int r, int w) { return w ^ r % 4; }
__device__ int place_b(int r, int w) { return w ^ r % 8; }  // a row is 128 bytes

/// Requests a stage: K from `first` on. Zeros past the ends.
__device__ void copy_stage(Stage& to, const bf16* a, const bf16* b, int m, int n, int k, int first) {
  const int first_i = blockIdx.y * 64, first_j = blockIdx.x * 64;
  for (int e = threadIdx.x; e < 256; e += 128) {
    const int r = e / 4, w = e % 4;
    const bool inside = first_i + r < m && first + w * 8 < k;
    cuda::cp_async_16(&to.a[r][place_a(r, w)], inside ? a + (first_i + r) * k + first + w * 8 : a,
                      inside ? 16 : 0);
  }
  for (int e = threadIdx.x; e < 256; e += 128) {
    const int r = e / 8, w = e % 8;
    const bool inside = first + r < k && first_j + w * 8 < n;
    cuda::cp_async_16(&to.b[r][place_b(r, w)], inside ? b + (first + r) * n + first_j + w * 8 : b,
                      inside ? 16 : 0);
  }
}

/// y = a·b for m rows of k and k rows of n, both multiples of 8. A block of four warps computes 64 x 64
/// elements, a warp 32 x 32 of them: 2 x 4 products of 16 x 8.
/// ROOFTILE_SHARED(ring, Stage[2]) is __shared__ Stage ring[2] on a GPU.
__global__ void gemm(const bf16* a, const bf16* b, bf16* y, int m, int n, int k) {
  ROOFTILE_SHARED(ring, Stage[2]);
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, i = warp / 2 * 32, j = warp % 2 * 32;
  const int stages = (k + 31) / 32;
  float sum[2][4][4] = {};
  if (stages > 0) copy_stage(ring[0], a, b, m, n, k, 0);
  cuda::cp_async_commit();
  for (int s = 0; s < stages; ++s) {
    if (s + 1 < stages) copy_stage(ring[(s + 1) % 2], a, b, m, n, k, (s + 1) * 32);
    cuda::cp_async_commit();
    cuda::cp_async_wait<1>();
    __syncthreads();
    const Stage& stage = ring[s % 2];
    ROOFTILE_UNROLL for (int step = 0; step < 2; ++step) {  // 16 of K
      unsigned left[2][4], right[2][4];
      ROOFTILE_UNROLL for (int x = 0; x < 2; ++x) {
        const int a_row = i + x * 16 + lane % 16, a_word = step * 2 + lane / 16;
        cuda::load_matrix(left[x], &stage.a[a_row][place_a(a_row, a_word)]);
        const int b_row = step * 16 + lane % 16, b_word = j / 8 + x * 2 + lane / 16;
        cuda::load_matrix<true>(right[x], &stage.b[b_row][place_b(b_row, b_word)]);
      }
      ROOFTILE_UNROLL for (int x = 0; x < 2; ++x) {
        ROOFTILE_UNROLL for (int c = 0; c < 4; ++c) {
          const unsigned pair[2] = {right[c / 2][c % 2 * 2], right[c / 2][c % 2 * 2 + 1]};
          cuda::mma_bf16(sum[x][c], left[x], pair);
        }
      }
    }
    __syncthreads();  // all have read
  }
  for (int x = 0; x < 2; ++x)
    for (int c = 0; c < 4; ++c)
      for (int half = 0; half < 2; ++half) {
        const int row = blockIdx.y * 64 + i + x * 16 + half * 8 + lane / 4;
        const int column = blockIdx.x * 64 + j + c * 8 + lane % 4 * 2;
        if (row < m && column < n)
          *reinterpret_cast<__nv_bfloat162*>(y + row * n + column) =
              __floats2bfloat162_rn(sum[x][c][2 * half], sum[x][c][2 * half + 1]);
      }
}
