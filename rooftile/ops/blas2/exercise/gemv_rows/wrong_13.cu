// Wrong [race]: the next row's sums replace what lane 0 still reads
// Says: a __syncthreads() is missing
#include <cuda_runtime.h>

/// y = alpha · A · x for `rows` rows of `columns`. A block of 256 threads has 32 rows: warp w of block b has
/// the four from row b * 32 + w * 4 on.
__global__ void gemv(const float* a, const float* x, float* y, int rows, int columns, float alpha) {
  const int lane = threadIdx.x % 32, first = blockIdx.x * 32 + threadIdx.x / 32 * 4;
  ROOFTILE_SHARED(part, float[256]);
  float sums[4] = {0, 0, 0, 0};
  for (int j = lane; j < columns; j += 32) {
    const float right = x[j];  // for four rows
    for (int r = 0; r < 4; ++r)
      if (first + r < rows)
        sums[r] = fmaf(a[static_cast<long long>(first + r) * columns + j], right, sums[r]);
  }
  for (int r = 0; r < 4; ++r) {
    part[threadIdx.x] = sums[r];
    __syncthreads();
    if (lane == 0)
      for (int k = 1; k < 32; ++k) sums[r] += part[threadIdx.x + k];
    if (lane == 0 && first + r < rows) y[first + r] = alpha * sums[r];
  }
}
