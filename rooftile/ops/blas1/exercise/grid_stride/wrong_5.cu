// Wrong [blocks]: the first block takes all elements
#include <cuda_runtime.h>

__global__ void add(const float* x, const float* y, float* z, long long n) {
  if (blockIdx.x != 0) return;
  for (long long i = threadIdx.x; i < n; i += blockDim.x) z[i] = x[i] + y[i];
}
