// expect: rooftile: declare shared memory with ROOFTILE_SHARED
#include <cuda_runtime.h>

#include "rooftile/backend/cuda/shared.h"

__global__ void kernel(float* x) {
#ifdef ROOFTILE_FIXED
  ROOFTILE_DYNAMIC_SHARED(bytes);
#else
  extern __shared__ float bytes[];
#endif
  x[0] = sizeof(bytes[0]);
}
