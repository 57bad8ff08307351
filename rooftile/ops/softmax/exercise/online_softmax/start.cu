// Exercise online_softmax: maximum and sum from one pass over the row; a block per row.
#include <cuda_runtime.h>

#include "rooftile/backend/cuda/shared.h"

/// y = e^(x - m) / Σ e^(x - m), m the row's maximum. Block b has row b, and 256 threads.
/// ROOFTILE_SHARED(sums, float[256]) is __shared__ float sums[256] on a GPU.
__global__ void softmax(const float* x, float* y, int columns) {
  // 1. Each thread: the maximum of its elements, and their sum relative to it, in one loop.
  // 2. The 256 maxima and sums become one, in shared memory.
  // 3. Each thread stores its elements.
}
