// Exercise grid_stride: z = x + y by a grid that has fewer threads than there are elements.
#include <cuda_runtime.h>

/// Right for every n, whatever the number of blocks; in each step, the lanes of a warp have neighbouring
/// elements.
__global__ void add(const float* x, const float* y, float* z, long long n) {
  // your lines
}
