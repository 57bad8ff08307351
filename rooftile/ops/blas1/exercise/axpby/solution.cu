// Exercise axpby: y = alpha x + beta y; where a factor is 0, its vector is not read.
#include <cuda_runtime.h>

__global__ void axpby(float alpha, const float* x, float beta, float* y, long long n) {
  const long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const float ax = alpha == 0 ? 0 : alpha * x[i];
  const float by = beta == 0 ? 0 : beta * y[i];
  y[i] = ax + by;
}
