// Exercise coalescing: right, and eight times as much traffic as needed. Change which elements a thread
// takes.
#include <cuda_runtime.h>

/// z = x + y in blocks of 256 threads, 4096 elements a block, sixteen elements a thread.
__global__ void add_sixteen(const float* x, const float* y, float* z, long long n) {
  const long long first = (static_cast<long long>(blockIdx.x) * 256 + threadIdx.x) * 16;
  for (int k = 0; k < 16; ++k) {
    const long long i = first + k;
    if (i < n) z[i] = x[i] + y[i];
  }
}
