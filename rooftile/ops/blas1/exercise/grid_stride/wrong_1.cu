// Wrong [sectors]: contiguous shares for each thread, 12.5% of the bytes used
#include <cuda_runtime.h>

__global__ void add(const float* x, const float* y, float* z, long long n) {
  const long long threads = static_cast<long long>(gridDim.x) * blockDim.x;
  const long long thread = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  const long long share = (n + threads - 1) / threads;
  const long long end = (thread + 1) * share < n ? (thread + 1) * share : n;
  for (long long i = thread * share; i < end; ++i) z[i] = x[i] + y[i];
}
