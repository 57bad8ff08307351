// Wrong [values]: the factors are exchanged
#include <cuda_runtime.h>

__global__ void axpby(float alpha, const float* x, float beta, float* y, long long n) {
  const long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const float ax = alpha == 0 ? 0 : beta * x[i];
  const float by = beta == 0 ? 0 : alpha * y[i];
  y[i] = ax + by;
}
