// Wrong [beta=0]: 0 times what y held
#include <cuda_runtime.h>

__global__ void axpby(float alpha, const float* x, float beta, float* y, long long n) {
  const long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const float ax = alpha == 0 ? 0 : alpha * x[i];
  const float by = beta * y[i];
  y[i] = ax + by;
}
