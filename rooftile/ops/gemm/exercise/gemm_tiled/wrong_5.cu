// Wrong [barrier]: threads past the edges of y return before the barriers
#include <cuda_runtime.h>

#include "rooftile/backend/cuda/shared.h"

/// y = a·b for m rows of k and k rows of n; a block of 32 x 32 threads has as many elements of y: 32 from row
/// 32 · blockIdx.y, and 32 from column 32 · blockIdx.x on.
/// ROOFTILE_SHARED(tile, float[32][32]) is __shared__ float tile[32][32] on a GPU.
__global__ void gemm(const float* a, const float* b, float* y, int m, int n, int k) {
  ROOFTILE_SHARED(a_tile, float[32][32]);
  ROOFTILE_SHARED(b_tile, float[32][32]);
  const int row = threadIdx.y, column = threadIdx.x;
  const int i = blockIdx.y * 32 + row, j = blockIdx.x * 32 + column;
  if (i >= m || j >= n) return;
  float sum = 0;
  for (int first = 0; first < k; first += 32) {
    a_tile[row][column] = i < m && first + column < k ? a[i * k + first + column] : 0;
    b_tile[row][column] = first + row < k && j < n ? b[(first + row) * n + j] : 0;
    __syncthreads();
    for (int p = 0; p < 32; ++p) sum = fmaf(a_tile[row][p], b_tile[p][column], sum);
    __syncthreads();  // all have read
  }
  y[i * n + j] = sum;
}
