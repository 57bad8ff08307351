// Idea: the threads of a warp read each other's registers: five shuffles fold 32 values into one.
// Changed: 02_block's tree. Eight warps leave one value each in shared memory, and one barrier is left of
// nine. Binds: bytes. The row is read, read again, written, read and written: five units where two would do;
// a long row has left the first cache by then. Next: the row stays in registers.
#include <cmath>

#include "rooftile/backend/cuda/launch.h"
#include "rooftile/backend/cuda/shared.h"
#include "rooftile/ops/softmax/ladder/ladder.h"

namespace rooftile::ladder {
namespace {

constexpr int kThreads = 256, kWarps = kThreads / 32;

/// `count` neighbouring threads' values as one, in all of them: each with the one whose number differs in one
/// bit.
template <class Operation>
__device__ float over_lanes(float mine, int count, Operation operation) {
  for (int far = count / 2; far > 0; far /= 2)
    mine = operation(mine, __shfl_xor_sync(0xffffffffu, mine, far));
  return mine;
}
// [over_block]
template <class Operation>
__device__ float over_block(float mine, Operation operation) {
  ROOFTILE_SHARED(part, float[kWarps]);
  const int t = static_cast<int>(threadIdx.x);
  mine = over_lanes(mine, 32, operation);
  if (t % 32 == 0) part[t / 32] = mine;  // [a warp's]
  __syncthreads();
  return over_lanes(part[t % kWarps], kWarps, operation);  // [all warps']
}
// [/over_block]
struct Larger {
  __device__ float operator()(float a, float b) const { return fmaxf(a, b); }
};
struct Add {
  __device__ float operator()(float a, float b) const { return a + b; }
};

__global__ void __launch_bounds__(kThreads) softmax_shuffles(const __grid_constant__ SoftmaxProblem p) {
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

Status launch_softmax_shuffles(const CudaLaunch& launch, const SoftmaxProblem& p) {
  if (p.rows.rows <= 0 || p.rows.columns <= 0) return {};
  const auto blocks = static_cast<unsigned>(p.rows.rows);
  return cuda::launch(launch, "softmax", {blocks, kThreads}, softmax_shuffles, p);
}

}  // namespace rooftile::ladder
