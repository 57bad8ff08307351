// expect: rooftile: the emulated device has no cooperative groups
#include <cuda_runtime.h>
#ifndef ROOFTILE_FIXED
#include <cooperative_groups.h>
#endif

__global__ void kernel() { __syncthreads(); }
