// Exercise online_softmax: maximum and sum from one pass over the row; a block per row.
#include <cuda_runtime.h>

#include "rooftile/backend/cuda/shared.h"

/// y = e^(x - m) / Σ e^(x - m), m the row's maximum. Block b has row b, and 256 threads.
/// ROOFTILE_SHARED(sums, float[256]) is __shared__ float sums[256] on a GPU.
__global__ void softmax(const float* x, float* y, int columns) {
  ROOFTILE_SHARED(maxima, float[256]);
  ROOFTILE_SHARED(sums, float[256]);
  const float* row = x + static_cast<long long>(blockIdx.x) * columns;
  float* out = y + static_cast<long long>(blockIdx.x) * columns;
  const int t = threadIdx.x;
  float most = -INFINITY, sum = 0;
  for (int j = t; j < columns; j += 256) {
    const float value = row[j];
    if (value == -INFINITY) continue;  // adds 0
    const float larger = fmaxf(most, value);
    sum = sum * expf(most - larger) + expf(value - larger);
    most = larger;
  }
  maxima[t] = most;
  sums[t] = sum;
  for (int half = 128; half > 0; half /= 2) {
    __syncthreads();
    if (t < half) {
      const float a = maxima[t], b = maxima[t + half], larger = fmaxf(a, b);
      const float base = larger == -INFINITY ? 0 : larger;  // neither has seen a number
      sums[t] = sums[t] * expf(a - base) + sums[t + half] * expf(b - base);
      maxima[t] = larger;
    }
  }
  __syncthreads();  // all threads read the result
  const float row_max = maxima[0], scale = 1 / sums[0];
  for (int j = t; j < columns; j += 256) out[j] = expf(row[j] - row_max) * scale;
}
