#pragma once
// What the GPU's rungs share from 04 on: a row's largest element and its sum, as 03_shuffles finds them, over
// a block of any number of warps; and rows of up to 32 elements a thread.
#include "rooftile/backend/cuda/shared.h"
#include "rooftile/backend/cuda/unroll.h"
#include "rooftile/ops/softmax/ladder/ladder.h"

namespace rooftile::ladder::softmax_gpu {

inline constexpr int kMaxThreads = 1024, kItemsPerThread = 32;  // 1024 threads have 64 registers each
static_assert(kLongestGpuSoftmaxRow == kMaxThreads * kItemsPerThread);

struct Larger {
  static constexpr float kNeutral = -__builtin_huge_valf();
  __device__ float operator()(float a, float b) const { return fmaxf(a, b); }
};
struct Add {
  static constexpr float kNeutral = 0;
  __device__ float operator()(float a, float b) const { return a + b; }
};

/// `count` neighbouring threads' values as one, in all of them. All threads of the warp call it.
template <class Operation>
__device__ __forceinline__ float over_lanes(float mine, int count, Operation operation) {
  for (int far = count / 2; far > 0; far /= 2)
    mine = operation(mine, __shfl_xor_sync(0xffffffffu, mine, far));
  return mine;
}
/// All threads' values as one; once a block for each operation.
template <class Operation>
__device__ __forceinline__ float over_block(float mine, Operation operation) {
  ROOFTILE_SHARED(part, float[32]);
  const unsigned lane = threadIdx.x % 32;
  mine = over_lanes(mine, 32, operation);
  if (lane == 0) part[threadIdx.x / 32] = mine;  // [a warp's]
  __syncthreads();
  return over_lanes(lane < blockDim.x / 32 ? part[lane] : Operation::kNeutral, 32,
                    operation);  // [all warps']
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

/// unit · word, -inf from the n-th element on: of these the exponential is 0.
__device__ __forceinline__ float4 scaled(const float4& word, int i, int n, float unit) {
  constexpr float kNone = Larger::kNeutral;
  return {i < n ? unit * word.x : kNone, i + 1 < n ? unit * word.y : kNone, i + 2 < n ? unit * word.z : kNone,
          i + 3 < n ? unit * word.w : kNone};
}

/// Whether every row of x and y begins at a 16-byte word and is whole ones.
inline bool aligned(const SoftmaxProblem& p) {
  std::int64_t elements = p.rows.columns;
  for (int d = 0; d < p.rows.rank; ++d) elements |= p.rows.stride[0][d] | p.rows.stride[1][d];
  const auto address = reinterpret_cast<std::uintptr_t>(p.x) | reinterpret_cast<std::uintptr_t>(p.y);
  return elements % 4 == 0 && address % 16 == 0;
}

}  // namespace rooftile::ladder::softmax_gpu
