// Exercise gemm_coarsened: right, and it passes over K eight times, once for each element of a thread.
#include <cuda_runtime.h>

#include "rooftile/backend/cuda/shared.h"

/// y = a·b for m rows of k and k rows of n; a block of 512 threads has 64 x 64 elements of y, from row
/// 64 · blockIdx.y and column 64 · blockIdx.x on. Tiles hold 8 of K.
__global__ void gemm(const float* a, const float* b, float* y, int m, int n, int k) {
  ROOFTILE_SHARED(a_tile, float[8][8]);
  ROOFTILE_SHARED(b_tile, float[8][64]);
  const int t = threadIdx.x, first_i = blockIdx.y * 64, first_j = blockIdx.x * 64;
  const int row = t / 64, column = t % 64, j = first_j + column;
  for (int r = 0; r < 8; ++r) {
    float sum = 0;
    for (int first = 0; first < k; first += 8) {
      const int i = first_i + 8 * r + t / 8, in_a = first + t % 8, in_b = first + row;
      if (t < 64) a_tile[t / 8][t % 8] = i < m && in_a < k ? a[i * k + in_a] : 0;
      b_tile[row][column] = in_b < k && j < n ? b[in_b * n + j] : 0;
      __syncthreads();
      for (int p = 0; p < 8; ++p) sum = fmaf(a_tile[row][p], b_tile[p][column], sum);
      __syncthreads();
    }
    const int i = first_i + 8 * r + row;
    if (i < m && j < n) y[i * n + j] = sum;
  }
}
