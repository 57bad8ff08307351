// Wrong [unwritten]: no barrier
#include <cuda_runtime.h>

#include "rooftile/backend/cuda/shared.h"

/// y[j][i] = x[i][j] for m rows of n. The element of row r and column c lies at column c ^ r: of a row, all
/// 32 columns are there in another order; of a column, the rows' places differ in all 32 banks.
__global__ void transpose(const float* x, float* y, int m, int n) {
  ROOFTILE_SHARED(tile, float[32][32]);
  const int first_i = blockIdx.y * 32, first_j = blockIdx.x * 32;
  const int lane = threadIdx.x, row = threadIdx.y;
  if (first_i + row < m && first_j + lane < n)
    tile[row][lane ^ row] = x[static_cast<long long>(first_i + row) * n + first_j + lane];
  if (first_j + row < n && first_i + lane < m)
    y[static_cast<long long>(first_j + row) * m + first_i + lane] = tile[lane][row ^ lane];
}
