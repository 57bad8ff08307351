// Wrong [threads]: one lane of each warp takes the warp's elements
#include <cuda_runtime.h>

__global__ void add(const float* x, const float* y, float* z, long long n) {
  const long long step = static_cast<long long>(gridDim.x) * blockDim.x;
  const long long first = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (threadIdx.x % 32 != 0) return;
  for (long long i = first; i < n; i += step)
    for (long long k = i; k < n && k < i + 32; ++k) z[k] = x[k] + y[k];
}
