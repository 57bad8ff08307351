// expect: rooftile: the emulated device has no textures: tex1Dfetch
#include <cuda_runtime.h>

__global__ void kernel(const float* x, float* y) {
#ifdef ROOFTILE_FIXED
  y[threadIdx.x] = __ldg(x + threadIdx.x);
#else
  y[threadIdx.x] = tex1Dfetch<float>(x, threadIdx.x);
#endif
}
