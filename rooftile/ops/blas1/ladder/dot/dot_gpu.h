#pragma once
// What dot's rungs on a GPU share.
#include "rooftile/backend/cuda/launch.h"
#include "rooftile/backend/cuda/shared.h"
#include "rooftile/ops/blas1/ladder/ladder.h"

namespace rooftile::ladder {

inline constexpr int kDotThreads = 256;
/// Sums that the scratch memory of a launch holds.
inline constexpr int kMaxSums = kCudaScratchBytes / sizeof(float);

// [last]
/// The last step of the first five rungs: one thread adds the sums, one after another.
template <class R>
__global__ void add_sums(const float* sums, int count, R* result) {
  float sum = 0;
  for (int i = 0; i < count; ++i) sum += sums[i];
  *result = sum;
}
// [/last]

inline Status launch_add_sums(const CudaLaunch& launch, const DotProblem& p, unsigned count) {
  const auto* sums = static_cast<const float*>(launch.scratch);
  const int n = static_cast<int>(count);
  if (p.result_dtype == DType::f64)
    return cuda::launch(launch, "dot", {1, 1}, add_sums<double>, sums, n, static_cast<double*>(p.result));
  return cuda::launch(launch, "dot", {1, 1}, add_sums<float>, sums, n, static_cast<float*>(p.result));
}

/// Blocks that share a vector, each with one sum: the same number on every GPU. Of a grid that followed the
/// multiprocessors, the order of additions would, too, and with it the bits.
inline constexpr int kDotBlocks = 1024;

/// A rung's two launches: `kernel` in as many blocks as `steps` steps of its threads need, at most
/// kDotBlocks; then add_sums.
inline Status launch_block_sums(const CudaLaunch& launch, const DotProblem& p, std::int64_t steps,
                                void (*kernel)(const float*, const float*, std::int64_t, float*)) {
  const std::int64_t needed = (steps + kDotThreads - 1) / kDotThreads;
  const auto blocks = static_cast<unsigned>(needed < kDotBlocks ? needed : kDotBlocks);
  if (blocks > 0) {
    const Status status = cuda::launch(
        launch, "dot", {blocks, kDotThreads}, kernel, static_cast<const float*>(p.data[0]),
        static_cast<const float*>(p.data[1]), p.rows.columns, static_cast<float*>(launch.scratch));
    if (!status) return status;
  }
  return launch_add_sums(launch, p, blocks);
}

// [shuffles]
// [warp_sum]
/// The sum over a warp, in lane 0: each step, a lane adds what the lane `far` above it has.
__device__ __forceinline__ float warp_sum(float sum) {
  for (int far = 16; far > 0; far /= 2) sum += __shfl_down_sync(0xffffffffu, sum, far);
  return sum;
}
// [/warp_sum]

/// The sum over a block of kDotThreads, in thread 0: each warp's sum goes to shared memory, and the first
/// warp adds them.
__device__ __forceinline__ float block_sum(float sum) {
  constexpr int kWarps = kDotThreads / 32;
  ROOFTILE_SHARED(warps, float[kWarps]);
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  sum = warp_sum(sum);
  if (lane == 0) warps[warp] = sum;
  __syncthreads();
  if (warp > 0) return 0;
  return warp_sum(lane < kWarps ? warps[lane] : 0);
}
// [/shuffles]

__device__ __forceinline__ void add_products(float4& sum, const float4& a, const float4& b) {
  sum.x += a.x * b.x;
  sum.y += a.y * b.y;
  sum.z += a.z * b.z;
  sum.w += a.w * b.w;
}

/// Σ xᵢyᵢ over every step-th word of four floats from word `first` on: eight words in flight, a sum for
/// each of a word's four places.
__device__ __forceinline__ float sum_of_words(const float* x, const float* y, std::int64_t words,
                                              std::int64_t first, std::int64_t step) {
  constexpr int kWords = 4;
  const auto* x4 = reinterpret_cast<const float4*>(x);
  const auto* y4 = reinterpret_cast<const float4*>(y);
  float4 sum{0, 0, 0, 0};
  std::int64_t i = first;
  // [in_flight]
  for (; i + (kWords - 1) * step < words; i += kWords * step) {
    float4 a[kWords], b[kWords];
    for (int k = 0; k < kWords; ++k) a[k] = x4[i + k * step];
    for (int k = 0; k < kWords; ++k) b[k] = y4[i + k * step];
    for (int k = 0; k < kWords; ++k) add_products(sum, a[k], b[k]);
  }
  // [/in_flight]
  for (; i < words; i += step) {
    const float4 a = x4[i], b = y4[i];
    add_products(sum, a, b);
  }
  return (sum.x + sum.z) + (sum.y + sum.w);
}

}  // namespace rooftile::ladder
