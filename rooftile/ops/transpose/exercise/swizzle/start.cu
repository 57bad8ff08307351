// Exercise swizzle: a transpose by a tile in shared memory. Right; its last load has 32 passes over the
// banks.
#include <cuda_runtime.h>

#include "rooftile/backend/cuda/shared.h"

// [tile]
/// y[j][i] = x[i][j] for m rows of n; a block of 32 x 32 threads has a tile of as many elements.
/// ROOFTILE_SHARED(tile, float[32][32]) is __shared__ float tile[32][32] on a GPU.
__global__ void transpose(const float* x, float* y, int m, int n) {
  ROOFTILE_SHARED(tile, float[32][32]);
  const int first_i = blockIdx.y * 32, first_j = blockIdx.x * 32;
  const int lane = threadIdx.x, row = threadIdx.y;
  if (first_i + row < m && first_j + lane < n)
    tile[row][lane] = x[static_cast<long long>(first_i + row) * n + first_j + lane];
  __syncthreads();
  if (first_j + row < n && first_i + lane < m)
    y[static_cast<long long>(first_j + row) * m + first_i + lane] = tile[lane][row];
}
// [/tile]
