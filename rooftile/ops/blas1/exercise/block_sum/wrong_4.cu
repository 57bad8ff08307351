// Wrong [race]: the last six steps as before 2017: volatile, and no lane waits
#include <cuda_runtime.h>

/// All 256 threads of a block call this; values[threadIdx.x] is a thread's own.
__device__ float block_sum(float* values) {
  const unsigned t = threadIdx.x;
  __syncthreads();
  if (t < 128) values[t] += values[t + 128];
  __syncthreads();
  if (t < 64) values[t] += values[t + 64];
  __syncthreads();
  if (t < 32) {
    volatile float* v = values;
    v[t] = v[t] + v[t + 32];
    v[t] = v[t] + v[t + 16];
    v[t] = v[t] + v[t + 8];
    v[t] = v[t] + v[t + 4];
    v[t] = v[t] + v[t + 2];
    v[t] = v[t] + v[t + 1];
  }
  return t == 0 ? values[0] : 0;
}
