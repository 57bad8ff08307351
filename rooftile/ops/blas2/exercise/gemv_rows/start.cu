// Exercise gemv_rows: a matrix times a vector; a warp for each four rows.
#include <cuda_runtime.h>

/// y = alpha · A · x for `rows` rows of `columns`. A block of 256 threads has 32 rows: warp w of block b has
/// the four from row b * 32 + w * 4 on.
__global__ void gemv(const float* a, const float* x, float* y, int rows, int columns, float alpha) {
  // Right, and slow: a lane has a row of its own, so a warp reads A from 32 places far apart.
  const int row = blockIdx.x * 32 + threadIdx.x;
  if (threadIdx.x >= 32 || row >= rows) return;
  float sum = 0;
  for (int j = 0; j < columns; ++j) sum = fmaf(a[static_cast<long long>(row) * columns + j], x[j], sum);
  y[row] = alpha * sum;
}
