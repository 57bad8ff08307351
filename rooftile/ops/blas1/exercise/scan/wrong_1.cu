// Wrong [race]: threads write their sums while others read them
#include <cuda_runtime.h>

#include "rooftile/backend/cuda/shared.h"

/// Block b has elements 256 b to 256 b + 255, a thread each. y: their prefix sums within the block;
/// totals[b]: their sum. A second launch of one block scans the totals. ROOFTILE_SHARED(sums, int[256]) is
/// __shared__ int sums[256].
__global__ void scan_blocks(const int* x, int* y, int* totals, int n) {
  ROOFTILE_SHARED(sums, int[256]);
  const int t = threadIdx.x, i = blockIdx.x * 256 + t;
  int sum = i < n ? x[i] : 0;
  sums[t] = sum;
  for (int step = 1; step < 256; step *= 2) {
    __syncthreads();  // all sums are there
    if (t >= step) sum += sums[t - step];
    sums[t] = sum;
  }
  if (i < n) y[i] = sum;
  if (t == 255) totals[blockIdx.x] = sum;
}

/// Adds to block b's elements the sum of all blocks before it; before[b]: the prefix sums of the totals,
/// inclusive.
__global__ void add_offsets(const int* before, int* y, int n) {
  const int i = blockIdx.x * 256 + threadIdx.x;
  if (blockIdx.x > 0 && i < n) y[i] += before[blockIdx.x - 1];
}
