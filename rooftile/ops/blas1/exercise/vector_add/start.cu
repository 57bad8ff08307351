// Exercise vector_add: z = x + y on the GPU, one element for each thread.
#include <cuda_runtime.h>

/// How many blocks of `threads` threads n elements need.
long long blocks_for(long long n, int threads) {
  return 0;  // your line
}

/// Each thread computes one element of z. The grid has blocks_for(n, blockDim.x) blocks.
__global__ void add(const float* x, const float* y, float* z, long long n) {
  // your lines
}
