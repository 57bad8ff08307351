// Exercise histogram: how many pixels have each of 256 values; each block counts for itself first.
#include <cuda_runtime.h>

#include "rooftile/backend/cuda/shared.h"

/// counts[v] += how many of x[0] to x[n - 1] are v. Blocks of 256 threads, fewer threads than elements; all
/// counts are 0 before. ROOFTILE_SHARED(bins, int[256]) is __shared__ int bins[256] on a GPU.
__global__ void histogram(const unsigned char* x, int* counts, int n) {
  // Right, and slow: each pixel waits for an update of global memory.
  const int step = gridDim.x * blockDim.x;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += step) atomicAdd(&counts[x[i]], 1);
}
