// Exercise scan: inclusive prefix sums, y[i] = x[0] + … + x[i], by blocks and then over the blocks.
#include <cuda_runtime.h>

#include "rooftile/backend/cuda/shared.h"

/// Block b has elements 256 b to 256 b + 255, a thread each. y: their prefix sums within the block;
/// totals[b]: their sum. A second launch of one block scans the totals. ROOFTILE_SHARED(sums, int[256]) is
/// __shared__ int sums[256].
__global__ void scan_blocks(const int* x, int* y, int* totals, int n) {
  // 1. Bring the block's elements into shared memory, 0 for those past the end.
  // 2. In eight steps, of 1, 2, … 128: each thread adds the sum that stands step places before its own.
  // 3. Store the sums, and the last one to totals.
}

/// Adds to block b's elements the sum of all blocks before it; before[b]: the prefix sums of the totals,
/// inclusive.
__global__ void add_offsets(const int* before, int* y, int n) {}
