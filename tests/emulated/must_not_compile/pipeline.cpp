// expect: rooftile: __pipeline_memcpy_async: write cp_async_16
#include <cuda_runtime.h>

#include "rooftile/backend/cuda/ptx.h"

__global__ void kernel(float4* to, const float4* from) {
#ifdef ROOFTILE_FIXED
  rooftile::cuda::cp_async_16(to, from);
#else
  __pipeline_memcpy_async(to, from, 16);
#endif
}
