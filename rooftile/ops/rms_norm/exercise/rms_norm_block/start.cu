// Exercise rms_norm_block: a row over its root mean square, times a weight; a block per row.
#include <cuda_runtime.h>

#include "rooftile/backend/cuda/shared.h"

/// y = x · rstd · (weight + plus), rstd = 1 / √(Σ x² / columns + eps). Block b has row b, and 256 threads.
/// ROOFTILE_SHARED(sums, float[256]) is __shared__ float sums[256] on a GPU.
__global__ void rms_norm(const float* x, const float* weight, float* y, int columns, float eps, float plus) {
  // 1. Each thread adds up the squares of its elements.
  // 2. The 256 sums become one, in shared memory.
  // 3. Each thread stores its elements.
}
