// Wrong [missing]: element 4095 is left out
#include <cuda_runtime.h>

/// How many blocks of `threads` threads n elements need: the quotient, rounded up.
long long blocks_for(long long n, int threads) { return (n + threads - 1) / threads; }

__global__ void add(const float* x, const float* y, float* z, long long n) {
  const long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < n && i != 4095) z[i] = x[i] + y[i];
}
