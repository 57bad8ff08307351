// The program of docs/emulated-device.md: sums 256 numbers in a block. Stepped through with gdb by gdb.sh.
#include <cuda_runtime.h>

#include <cstdio>

#include "rooftile/backend/cuda/shared.h"
#include "rooftile/backend/emulated/engine.h"

// [kernel]
__global__ void block_sum(const float* x, float* sum) {
  ROOFTILE_SHARED(part, float[256]);
  const unsigned t = threadIdx.x;
  part[t] = x[t];
  __syncthreads();
  for (unsigned half = 128; half > 0; half /= 2) {
    if (t < half) part[t] += part[t + half];
    __syncthreads();
  }
  if (t == 0) *sum = part[0];
}
// [/kernel]

// [launch]
int main() {
  float x[256], sum = 0;
  for (int i = 0; i < 256; ++i) x[i] = float(i);
  using namespace rooftile::emulated;
  const Geometry geometry{.grid = 1, .block = 256};
  if (rooftile::Status s = launch(geometry, Options{}, "block_sum", block_sum, x, &sum); !s) {
    std::fprintf(stderr, "%s\n", s.message());
    return 1;
  }
  std::printf("%g\n", double(sum));
}
// [/launch]
