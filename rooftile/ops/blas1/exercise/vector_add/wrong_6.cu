// Wrong [grid]: one block too many where n is a multiple of the threads
#include <cuda_runtime.h>

/// How many blocks of `threads` threads n elements need: the quotient, rounded up.
long long blocks_for(long long n, int threads) { return n / threads + 1; }

/// Each thread computes one element of z. The last block may have threads without an element.
__global__ void add(const float* x, const float* y, float* z, long long n) {
  const long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < n) z[i] = x[i] + y[i];
}
