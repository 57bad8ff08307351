// Exercise block_sum: 256 threads have a value each; thread 0 returns their sum.
#include <cuda_runtime.h>

/// All 256 threads of a block call this; values[threadIdx.x] is a thread's own.
__device__ float block_sum(float* values) {
  const unsigned t = threadIdx.x;
  for (unsigned half = 128; half > 0; half /= 2) {
    __syncthreads();  // the step before is done, and before the first all values are there
    if (t < half) values[t] += values[t + half];
  }
  return t == 0 ? values[0] : 0;
}
