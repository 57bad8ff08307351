// Wrong [passes]: a pass for x · rstd, and one for the weight
#include <cuda_runtime.h>

#include "rooftile/backend/cuda/shared.h"

__global__ void rms_norm(const float* x, const float* weight, float* y, int columns, float eps, float plus) {
  ROOFTILE_SHARED(sums, float[256]);
  const float* row = x + static_cast<long long>(blockIdx.x) * columns;
  float* out = y + static_cast<long long>(blockIdx.x) * columns;
  const int t = threadIdx.x;
  float sum = 0;
  for (int j = t; j < columns; j += 256) sum = fmaf(row[j], row[j], sum);
  sums[t] = sum;
  for (int half = 128; half > 0; half /= 2) {
    __syncthreads();
    if (t < half) sums[t] += sums[t + half];
  }
  __syncthreads();  // all threads read the sum
  const float rstd = 1 / sqrtf(sums[0] / columns + eps);
  for (int j = t; j < columns; j += 256) out[j] = row[j] * rstd;
  for (int j = t; j < columns; j += 256) out[j] = out[j] * (weight[j] + plus);
}
