// Wrong [bounds]: the last step goes past the end
#include <cuda_runtime.h>

/// Each thread goes on by as many elements as the grid has threads.
__global__ void add(const float* x, const float* y, float* z, long long n) {
  const long long step = static_cast<long long>(gridDim.x) * blockDim.x;
  long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  for (; i <= n; i += step) z[i] = x[i] + y[i];
}
