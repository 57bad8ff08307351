// Exercise cross_entropy_block: a row's loss, log Σ e^(x) - x[target], from one pass; a block per row.
#include <cuda_runtime.h>

#include "rooftile/backend/cuda/shared.h"

/// losses[row] = log Σ e^(x) - x[target[row]], and 0 where the target is -100. Block b has row b, and 256
/// threads. ROOFTILE_SHARED(sums, float[256]) is __shared__ float sums[256] on a GPU.
__global__ void cross_entropy(const float* logits, const long long* target, float* losses, int classes) {
  // 1. Each thread: the maximum of its logits, and the sum of e^(logit - maximum), in one loop.
  // 2. The 256 maxima and sums become one, in shared memory.
  // 3. Thread 0 stores the loss: what must be subtracted first, so that no digit is lost?
}
