#pragma once
// What the GPU's rungs share: a row's operands; from 04 on also sums over a block of any number of warps, as
// 03_shuffles takes them, and rows of up to 16 elements a thread.
#include "rooftile/backend/cuda/shared.h"
#include "rooftile/backend/cuda/unroll.h"
#include "rooftile/ops/layer_norm/ladder/ladder.h"

namespace rooftile::ladder::layer_norm_gpu {

inline constexpr int kMaxThreads = 1024,
                     kItemsPerThread = 16;  // of the 64 registers that 1024 threads have each
static_assert(kLongestGpuLayerNormRow == kMaxThreads * kItemsPerThread);

struct GpuRow {
  std::int64_t n;
  const float *x, *weight, *bias;
  float *y, *mean, *rstd;  // mean and rstd: null where not asked for

  __device__ GpuRow(const LayerNormProblem& p, std::int64_t row)
      : n(p.rows.columns),
        x(at(p, LayerNormProblem::kX, row)),
        weight(static_cast<const float*>(p.vectors[LayerNormProblem::kWeight].data)),
        bias(static_cast<const float*>(p.vectors[LayerNormProblem::kBias].data)),
        y(at(p, LayerNormProblem::kY, row)),
        mean(at(p, LayerNormProblem::kMean, row)),
        rstd(at(p, LayerNormProblem::kRstd, row)) {}

  /// By one thread of the row.
  __device__ __forceinline__ void store_statistics(float its_mean, float its_rstd) const {
    if (mean) *mean = its_mean;  // [mean]
    if (rstd) *rstd = its_rstd;  // [rstd]
  }

 private:
  __device__ __forceinline__ static float* at(const LayerNormProblem& p, int operand, std::int64_t row) {
    auto* data = static_cast<float*>(const_cast<void*>(p.data[operand]));
    return data ? data + p.rows.offset(operand, row) : nullptr;
  }
};

/// The sum over `count` neighbouring threads, in all of them. All threads of the warp call it.
__device__ __forceinline__ float sum_of_lanes(float mine, int count) {
  for (int far = count / 2; far > 0; far /= 2) mine += __shfl_xor_sync(0xffffffffu, mine, far);
  return mine;
}
/// The sum over the block; each `kSum` has memory of its own.
template <int kSum>
__device__ __forceinline__ float sum_of_block(float mine) {
  ROOFTILE_SHARED(part, float[32]);
  const unsigned lane = threadIdx.x % 32;
  mine = sum_of_lanes(mine, 32);
  if (lane == 0) part[threadIdx.x / 32] = mine;  // [a warp's]
  __syncthreads();
  return sum_of_lanes(lane < blockDim.x / 32 ? part[lane] : 0, 32);  // [all warps']
}

/// Four neighbours from element i on, 0 past the n-th. `kAligned`: rows begin at, and are, whole 16-byte
/// words.
template <bool kAligned>
__device__ __forceinline__ float4 load_word(const float* x, int i, int n) {
  float4 word = {0, 0, 0, 0};
  if constexpr (kAligned) {
    if (i < n) word = *reinterpret_cast<const float4*>(x + i);  // [load a word]
  } else {
    if (i < n) word.x = x[i];  // [load one]
    if (i + 1 < n) word.y = x[i + 1];
    if (i + 2 < n) word.z = x[i + 2];
    if (i + 3 < n) word.w = x[i + 3];
  }
  return word;
}
template <bool kAligned>
__device__ __forceinline__ void store_word(float* y, int i, int n, const float4& word) {
  if constexpr (kAligned) {
    if (i < n) *reinterpret_cast<float4*>(y + i) = word;  // [store a word]
  } else {
    if (i < n) y[i] = word.x;  // [store one]
    if (i + 1 < n) y[i + 1] = word.y;
    if (i + 2 < n) y[i + 2] = word.z;
    if (i + 3 < n) y[i + 3] = word.w;
  }
}
__device__ __forceinline__ float sum_of_word(const float4& w) { return (w.x + w.y) + (w.z + w.w); }
/// (word - mean)², 0 from the n-th element on: lanes past the end are no part of the variance.
__device__ __forceinline__ float4 squares(const float4& word, int i, int n, float mean) {
  const float4 d = {word.x - mean, word.y - mean, word.z - mean, word.w - mean};
  return {i < n ? d.x * d.x : 0, i + 1 < n ? d.y * d.y : 0, i + 2 < n ? d.z * d.z : 0,
          i + 3 < n ? d.w * d.w : 0};
}
/// (word - mean) · rstd · weight + bias.
__device__ __forceinline__ float4 normalised(const float4& word, float mean, float rstd, const float4& w,
                                             const float4& b) {
  return {(word.x - mean) * rstd * w.x + b.x, (word.y - mean) * rstd * w.y + b.y,
          (word.z - mean) * rstd * w.z + b.z, (word.w - mean) * rstd * w.w + b.w};
}

/// Whether every row of x and y, the weight and the bias begin at a 16-byte word and are whole ones.
inline bool aligned(const LayerNormProblem& p) {
  using P = LayerNormProblem;
  std::int64_t elements = p.rows.columns;
  for (int d = 0; d < p.rows.rank; ++d) elements |= p.rows.stride[P::kX][d] | p.rows.stride[P::kY][d];
  std::uintptr_t address = 0;
  for (const void* data : {p.data[P::kX], p.data[P::kY], p.vectors[LayerNormProblem::kWeight].data,
                           p.vectors[LayerNormProblem::kBias].data})
    address |= reinterpret_cast<std::uintptr_t>(data);
  return elements % 4 == 0 && address % 16 == 0;
}

}  // namespace rooftile::ladder::layer_norm_gpu
