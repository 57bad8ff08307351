#pragma once
// What the GPU's rungs share: an element's terms, a block's sum, and the last kernel, which adds blocks'
// sums.
#include "rooftile/backend/cuda/launch.h"
#include "rooftile/backend/cuda/shared.h"
#include "rooftile/ops/dyt/ladder/ladder.h"

namespace rooftile::ladder::dyt_gpu {

inline constexpr int kThreads = 256;
enum Operand { kX, kDy, kDx };

/// What one element gives to each of the four results.
struct Terms {
  float dx, dalpha, dweight, dbias;
};
// [terms]
__device__ __forceinline__ Terms terms_of(float x, float dy, float weight, float alpha) {
  const float v = alpha * x, e = expf(-2 * fabsf(v)), r = 1 / (1 + e);
  const float g = dy * weight * (e * r * (r * 4));  // tanh' = 4e/(1 + e)²
  return {g * alpha, g * x, dy * tanhf(v), dy};
}
// [/terms]

template <class T>
__device__ __forceinline__ T* row_of(const DytBackwardProblem& p, Operand operand, std::int64_t row) {
  return static_cast<T*>(const_cast<void*>(p.data[operand])) + p.rows.offset(operand, row);
}
__device__ __forceinline__ float alpha_of(const DytBackwardProblem& p) {
  return *static_cast<const float*>(p.scalars[0]);
}
__device__ __forceinline__ const float* weights_of(const DytBackwardProblem& p) {
  return static_cast<const float*>(p.vectors[0].data);
}

/// All threads' values as one, in a fixed order; in thread 0, once a kernel.
// [block_sum]
__device__ __forceinline__ float block_sum(float mine) {
  ROOFTILE_SHARED(of_warps, float[kThreads / 32]);
  for (int far = 16; far > 0; far /= 2) mine += __shfl_xor_sync(0xffffffffu, mine, far);
  if (threadIdx.x % 32 == 0) of_warps[threadIdx.x / 32] = mine;
  __syncthreads();
  float sum = 0;
  if (threadIdx.x == 0)
    for (int warp = 0; warp < kThreads / 32; ++warp) sum += of_warps[warp];
  return sum;
}
// [/block_sum]

/// The gradients of p.blocks blocks, whose sums are in the workspace: a thread a column adds them in the
/// blocks' order, and the first thread of a last row of blocks alpha's.
// [add_blocks]
static __global__ void add_blocks(const __grid_constant__ DytBackwardProblem p) {
  const std::int64_t column = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  const int which = static_cast<int>(blockIdx.y);
  const bool is_alpha = which == DytBackwardProblem::kGradients;
  if (column >= (is_alpha ? 1 : p.rows.columns)) return;
  float sum = 0;
  for (std::int64_t b = 0; b < p.blocks; ++b)
    sum += is_alpha ? p.team_sums(0)[b] : p.block_sums(b, which)[column];
  static_cast<float*>(is_alpha ? p.scalar_gradients[0] : const_cast<void*>(p.gradients[which].data))[column] =
      sum;
}
// [/add_blocks]
inline Status launch_add_blocks(const CudaLaunch& launch, const DytBackwardProblem& p) {
  const auto across = static_cast<unsigned>((p.rows.columns + kThreads - 1) / kThreads);
  return cuda::launch(launch, "dyt_backward", {{across > 0 ? across : 1, 3}, kThreads}, add_blocks, p);
}

}  // namespace rooftile::ladder::dyt_gpu
