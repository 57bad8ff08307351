// Wrong [threads]: one thread computes all
#include <cuda_runtime.h>

/// How many blocks of `threads` threads n elements need: the quotient, rounded up.
long long blocks_for(long long n, int threads) { return (n + threads - 1) / threads; }

__global__ void add(const float* x, const float* y, float* z, long long n) {
  if (blockIdx.x != 0 || threadIdx.x != 0) return;
  for (long long i = 0; i < n; ++i) z[i] = x[i] + y[i];
}
