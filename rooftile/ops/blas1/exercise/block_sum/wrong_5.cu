// Wrong [threads]: thread 0 adds up what the others have
#include <cuda_runtime.h>

/// All 256 threads of a block call this; values[threadIdx.x] is a thread's own.
__device__ float block_sum(float* values) {
  __syncthreads();
  float sum = 0;
  if (threadIdx.x == 0)
    for (int i = 0; i < 256; ++i) sum += values[i];
  return sum;
}
