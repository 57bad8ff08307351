// Exercise gemm_tiled: right, and each element of a and b is read 32 times by a block. Keep it.
#include <cuda_runtime.h>

#include "rooftile/backend/cuda/shared.h"

/// y = a·b for m rows of k and k rows of n; a block of 32 x 32 threads has as many elements of y: 32 from row
/// 32 · blockIdx.y, and 32 from column 32 · blockIdx.x on.
/// ROOFTILE_SHARED(tile, float[32][32]) is __shared__ float tile[32][32] on a GPU.
__global__ void gemm(const float* a, const float* b, float* y, int m, int n, int k) {
  const int row = threadIdx.y, column = threadIdx.x;
  const int i = blockIdx.y * 32 + row, j = blockIdx.x * 32 + column;
  if (i >= m || j >= n) return;
  float sum = 0;
  for (int p = 0; p < k; ++p) sum = fmaf(a[i * k + p], b[p * n + j], sum);
  y[i * n + j] = sum;
}
