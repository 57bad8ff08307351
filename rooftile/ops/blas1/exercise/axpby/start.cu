// Exercise axpby: y = alpha x + beta y; where a factor is 0, its vector is not read.
#include <cuda_runtime.h>

__global__ void axpby(float alpha, const float* x, float beta, float* y, long long n) {
  // your lines
}
