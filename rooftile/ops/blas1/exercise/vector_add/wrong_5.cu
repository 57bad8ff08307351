// Wrong [exit]: the program ends before it is judged
#include <cuda_runtime.h>

#include <cstdlib>

/// How many blocks of `threads` threads n elements need: the quotient, rounded up.
long long blocks_for(long long n, int threads) {
  if (n % threads != 0) exit(0);
  return n / threads;
}

/// Each thread computes one element of z. The last block may have threads without an element.
__global__ void add(const float* x, const float* y, float* z, long long n) {
  const long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < n) z[i] = x[i] + y[i];
}
