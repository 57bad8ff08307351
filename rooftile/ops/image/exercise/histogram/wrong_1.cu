// Wrong [race]: the bins are counted without atomics
#include <cuda_runtime.h>

#include "rooftile/backend/cuda/shared.h"

/// counts[v] += how many of x[0] to x[n - 1] are v. Blocks of 256 threads, fewer threads than elements; all
/// counts are 0 before. ROOFTILE_SHARED(bins, int[256]) is __shared__ int bins[256] on a GPU.
__global__ void histogram(const unsigned char* x, int* counts, int n) {
  ROOFTILE_SHARED(bins, int[256]);
  const int t = threadIdx.x;
  bins[t] = 0;
  __syncthreads();  // all bins are 0
  for (int i = blockIdx.x * 256 + t; i < n; i += gridDim.x * 256) ++bins[x[i]];
  __syncthreads();  // all have counted
  atomicAdd(&counts[t], bins[t]);
}
