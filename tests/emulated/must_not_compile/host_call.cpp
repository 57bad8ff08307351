// expect: rooftile: cudaMalloc belongs to CUDA's host side
#include <cuda_runtime.h>

void caller(void** p) {
#ifdef ROOFTILE_FIXED
  *p = nullptr;
#else
  cudaMalloc(p, 16);
#endif
}
