// Wrong [values]: the first of K is left out
#include <cuda_runtime.h>

/// y = a·b for m rows of k and k rows of n; a block of 32 x 32 threads has as many elements of y: 32 from row
/// 32 · blockIdx.y, and 32 from column 32 · blockIdx.x on.
__global__ void gemm(const float* a, const float* b, float* y, int m, int n, int k) {
  const int i = blockIdx.y * 32 + threadIdx.y, j = blockIdx.x * 32 + threadIdx.x;
  if (i >= m || j >= n) return;
  float sum = 0;
  for (int p = 1; p < k; ++p) sum = fmaf(a[i * k + p], b[p * n + j], sum);
  y[i * n + j] = sum;
}
