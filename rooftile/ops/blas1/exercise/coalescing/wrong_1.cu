// Wrong [sectors]: lanes are two elements apart: half of the bytes are used
#include <cuda_runtime.h>

/// z = x + y in blocks of 256 threads, 4096 elements a block, sixteen elements a thread.
__global__ void add_sixteen(const float* x, const float* y, float* z, long long n) {
  const long long first = static_cast<long long>(blockIdx.x) * 4096 + threadIdx.x * 2;
  for (int k = 0; k < 16; ++k) {
    const long long i = first + (k / 2) * 512 + k % 2;
    if (i < n) z[i] = x[i] + y[i];
  }
}
