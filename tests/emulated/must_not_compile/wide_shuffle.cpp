// expect: rooftile: a shuffle moves trivially copyable values of 1 to 8 bytes
#include <cuda_runtime.h>

__global__ void kernel(float4* x) {
#ifdef ROOFTILE_FIXED
  x[threadIdx.x].x = __shfl_sync(~0u, x[threadIdx.x].x, 0);
#else
  x[threadIdx.x] = __shfl_sync(~0u, x[threadIdx.x], 0);
#endif
}
