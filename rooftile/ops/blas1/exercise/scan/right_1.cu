// Warps by shuffles, then the warps' sums: two barriers instead of sixteen.
#include <cuda_runtime.h>

#include "rooftile/backend/cuda/shared.h"

__device__ int scan_warp(int sum) {
  for (int step = 1; step < 32; step *= 2) {
    const int other = __shfl_up_sync(0xFFFFFFFFu, sum, step);
    if (threadIdx.x % 32 >= step) sum += other;
  }
  return sum;
}

__global__ void scan_blocks(const int* x, int* y, int* totals, int n) {
  ROOFTILE_SHARED(warps, int[8]);
  const int t = threadIdx.x, i = blockIdx.x * 256 + t;
  int sum = scan_warp(i < n ? x[i] : 0);
  if (t % 32 == 31) warps[t / 32] = sum;
  __syncthreads();
  for (int w = 0; w < t / 32; ++w) sum += warps[w];
  if (i < n) y[i] = sum;
  if (t == 255) totals[blockIdx.x] = sum;
}

__global__ void add_offsets(const int* before, int* y, int n) {
  const int i = blockIdx.x * 256 + threadIdx.x;
  if (blockIdx.x > 0 && i < n) y[i] += before[blockIdx.x - 1];
}
