// Idea: a thread for each element of x: it reads x[i][j] and writes y[j][i].
// Changed: this is the first rung. A warp's 32 lanes are neighbours in a row of x.
// Binds: bytes that nobody wants. The lanes' 128 bytes of x are 4 sectors, their 32 places in y are 32.
// Next: the same with rows of y, as a store that is scattered costs more than a load.
#include "rooftile/backend/cuda/launch.h"
#include "rooftile/ops/transpose/ladder/ladder.h"

namespace rooftile::ladder {
namespace {

__global__ void transpose_naive(const float* x, float* y, int m, int n) {
  const int j = static_cast<int>(blockIdx.x * 32 + threadIdx.x);
  const int i = static_cast<int>(blockIdx.y * 32 + threadIdx.y);
  if (i >= m || j >= n) return;
  const float value = x[std::int64_t{i} * n + j];  // [load]
  y[std::int64_t{j} * m + i] = value;              // [store]
}

}  // namespace

Status launch_naive(const CudaLaunch& launch, const TransposeProblem& p) {
  if (p.size() == 0) return {};
  const auto blocks = [](std::int64_t size) { return static_cast<unsigned>((size + 31) / 32); };
  return cuda::launch(launch, "transpose", {{blocks(p.n), blocks(p.m)}, {32, 32}}, transpose_naive,
                      static_cast<const float*>(p.x), static_cast<float*>(p.y), static_cast<int>(p.m),
                      static_cast<int>(p.n));
}

}  // namespace rooftile::ladder
