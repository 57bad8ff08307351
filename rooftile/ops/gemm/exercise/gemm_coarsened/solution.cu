// Exercise gemm_coarsened: a thread computes eight elements of a column, in one pass over K.
#include <cuda_runtime.h>

#include "rooftile/backend/cuda/shared.h"

/// y = a·b for m rows of k and k rows of n; a block of 512 threads has 64 x 64 elements of y, from row
/// 64 · blockIdx.y and column 64 · blockIdx.x on. Tiles hold 8 of K.
__global__ void gemm(const float* a, const float* b, float* y, int m, int n, int k) {
  ROOFTILE_SHARED(a_tile, float[64][8]);
  ROOFTILE_SHARED(b_tile, float[8][64]);
  const int t = threadIdx.x, first_i = blockIdx.y * 64, first_j = blockIdx.x * 64;
  const int row = t / 64 * 8, column = t % 64, j = first_j + column;
  float sum[8] = {};
  for (int first = 0; first < k; first += 8) {
    const int i = first_i + t / 8, in_a = first + t % 8, in_b = first + t / 64;
    a_tile[t / 8][t % 8] = i < m && in_a < k ? a[i * k + in_a] : 0;
    b_tile[t / 64][column] = in_b < k && j < n ? b[in_b * n + j] : 0;
    __syncthreads();
    for (int p = 0; p < 8; ++p)
      for (int r = 0; r < 8; ++r) sum[r] = fmaf(a_tile[row + r][p], b_tile[p][column], sum[r]);
    __syncthreads();  // all have read
  }
  for (int r = 0; r < 8; ++r) {
    const int i = first_i + row + r;
    if (i < m && j < n) y[i * n + j] = sum[r];
  }
}
