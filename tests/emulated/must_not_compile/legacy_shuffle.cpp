// expect: rooftile: __shfl_xor: warp functions without _sync are gone from CUDA
#include <cuda_runtime.h>

__global__ void kernel(float* x) {
#ifdef ROOFTILE_FIXED
  x[threadIdx.x] += __shfl_xor_sync(~0u, x[threadIdx.x], 1);
#else
  x[threadIdx.x] += __shfl_xor(x[threadIdx.x], 1);
#endif
}
