// Wrong [unwritten]: no barrier before the tiles are read
#include <cuda_runtime.h>

#include "rooftile/backend/cuda/shared.h"

/// y = a·b for m rows of k and n columns of k: element (p, j) of b is b[j * k + p]. A block of 32 x 32
/// threads has as many elements of y. ROOFTILE_SHARED(tile, float[32][32]) is __shared__ float tile[32][32]
/// on a GPU.
__global__ void gemm(const float* a, const float* b, float* y, int m, int n, int k) {
  ROOFTILE_SHARED(a_tile, float[32][32]);
  ROOFTILE_SHARED(b_tile, float[32][33]);
  const int row = threadIdx.y, column = threadIdx.x, first_j = blockIdx.x * 32;
  const int i = blockIdx.y * 32 + row, j = first_j + column;
  float sum = 0;
  for (int first = 0; first < k; first += 32) {
    a_tile[row][column] = i < m && first + column < k ? a[i * k + first + column] : 0;
    b_tile[column][row] =
        first_j + row < n && first + column < k ? b[(first_j + row) * k + first + column] : 0;
    for (int p = 0; p < 32; ++p) sum = fmaf(a_tile[row][p], b_tile[p][column], sum);
    __syncthreads();  // all have read
  }
  if (i < m && j < n) y[i * n + j] = sum;
}
