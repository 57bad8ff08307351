// Wrong [nan_inputs]: a NaN that a thread meets first is left out
#include <cuda_runtime.h>

#include "rooftile/backend/cuda/shared.h"

/// losses[row] = log Σ e^(x) - x[target[row]], and 0 where the target is -100. Block b has row b, and 256
/// threads. ROOFTILE_SHARED(sums, float[256]) is __shared__ float sums[256] on a GPU.
__global__ void cross_entropy(const float* logits, const long long* target, float* losses, int classes) {
  ROOFTILE_SHARED(maxima, float[256]);
  ROOFTILE_SHARED(sums, float[256]);
  const float* row = logits + static_cast<long long>(blockIdx.x) * classes;
  const int t = threadIdx.x;
  float most = -INFINITY, sum = 0;
  for (int j = t; j < classes; j += 256) {
    const float value = row[j];
    if (value > most) {
      sum *= expf(most - value);
      most = value;
    }
    if (most != -INFINITY) sum += expf(value - most);
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
  if (t != 0) return;
  const long long its = target[blockIdx.x];
  // The maximum and the target's logit may be large and close: their difference first.
  losses[blockIdx.x] = its == -100 ? 0 : (maxima[0] - row[its]) + logf(sums[0]);
}
