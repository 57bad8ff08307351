// Idea: a block for each row; neighbouring threads read neighbouring elements, and add up in shared memory.
// Changed: threads share a row. A warp's request now touches 4 sectors and uses every byte of them.
// Binds: five passes where two would do, and waiting: a tree over 256 threads has nine barriers, and there
// are two trees. Next: threads of a warp hand each other their sums without shared memory and without
// barriers.
#include <cmath>

#include "rooftile/backend/cuda/launch.h"
#include "rooftile/backend/cuda/shared.h"
#include "rooftile/ops/softmax/ladder/ladder.h"

namespace rooftile::ladder {
namespace {

constexpr int kThreads = 256;

/// All threads' values as one, by a tree: the upper half is folded onto the lower until one is left.
template <class Operation>
__device__ float over_block(float mine, Operation operation) {
  // [tree]
  ROOFTILE_SHARED(part, float[kThreads]);
  const int t = static_cast<int>(threadIdx.x);
  part[t] = mine;  // [into the tree]
  __syncthreads();
  for (int half = kThreads / 2; half > 0; half /= 2) {
    if (t < half) part[t] = operation(part[t], part[t + half]);  // [fold]
    __syncthreads();
  }
  return part[0];  // [out of the tree]
  // [/tree]
}
struct Larger {
  __device__ float operator()(float a, float b) const { return fmaxf(a, b); }
};
struct Add {
  __device__ float operator()(float a, float b) const { return a + b; }
};

__global__ void __launch_bounds__(kThreads) softmax_block(const __grid_constant__ SoftmaxProblem p) {
  const std::int64_t n = p.rows.columns;
  const float* x = static_cast<const float*>(p.x) + p.rows.offset(0, blockIdx.x);
  float* y = static_cast<float*>(p.y) + p.rows.offset(1, blockIdx.x);

  const tile::SplitScale s(p.scale);
  float row_max = -HUGE_VALF;
  for (std::int64_t i = threadIdx.x; i < n; i += kThreads) {
    row_max = fmaxf(row_max, s.unit * x[i]);  // [find the maximum]
  }
  row_max = over_block(row_max, Larger{});

  float sum = 0;
  for (std::int64_t i = threadIdx.x; i < n; i += kThreads) {
    const float e = expf((s.unit * x[i] - row_max) * s.rest);  // [read again]
    y[i] = e;                                                  // [write]
    sum += e;
  }
  sum = over_block(sum, Add{});

  for (std::int64_t i = threadIdx.x; i < n; i += kThreads) y[i] /= sum;  // [divide]
}

}  // namespace

Status launch_softmax_block(const CudaLaunch& launch, const SoftmaxProblem& p) {
  if (p.rows.rows <= 0 || p.rows.columns <= 0) return {};
  const auto blocks = static_cast<unsigned>(p.rows.rows);
  return cuda::launch(launch, "softmax", {blocks, kThreads}, softmax_block, p);
}

}  // namespace rooftile::ladder
