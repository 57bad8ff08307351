// expect: rooftile: declare shared memory with ROOFTILE_SHARED
#include <cuda_runtime.h>

#include "rooftile/backend/cuda/shared.h"

__global__ void kernel(float* x) {
#ifdef ROOFTILE_FIXED
  ROOFTILE_SHARED(tile, float[32]);
#else
  __shared__ float tile[32];
#endif
  tile[threadIdx.x] = x[threadIdx.x];
}
