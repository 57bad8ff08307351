// Kernels with one defect each, and the same without it. What the checked build must find, and where it must
// be silent.
#include <cuda_runtime.h>

#include "rooftile/backend/cuda/ptx.h"
#include "rooftile/backend/cuda/shared.h"
#include "tests/emulated/planted.h"

namespace rooftile::emulated::test {
namespace {
template <Bug kBug>
__global__ void reverse(const float* x, float* y) {
  ROOFTILE_SHARED(line, float[1024]);
  const unsigned t = threadIdx.x, n = blockDim.x;
  line[t] = x[t];
  if (kBug != Bug::kOnlyBarrier) __syncthreads();
  y[blockIdx.x * n + t] = line[n - 1 - t];
}

template <Bug kBug>
__global__ void reverse_often(const float* x, float* y) {
  ROOFTILE_SHARED(line, float[1024]);
  const unsigned t = threadIdx.x, n = blockDim.x;
  float sum = 0;
  for (int i = 0; i < 3; ++i) {
    line[t] = x[t] + float(i);
    __syncthreads();
    sum += line[n - 1 - t];
    if (kBug != Bug::kSecondBarrier) __syncthreads();
  }
  y[blockIdx.x * n + t] = sum;
}

template <Bug kBug>
__global__ void half_wait(const float* x, float* y) {
  ROOFTILE_SHARED(line, float[1024]);
  const unsigned t = threadIdx.x, n = blockDim.x;
  line[t] = x[t];
  if (kBug == Bug::kDivergentBarrier) {
    if (t < n / 2) __syncthreads();
  } else if (kBug == Bug::kTwoBarriers) {
    if (t < n / 2)
      __syncthreads();
    else
      __syncthreads();
  } else {
    __syncthreads();
  }
  y[blockIdx.x * n + t] = line[t];
}

/// Teams with fewer rows go on while others are in the loop: what they exchange then is theirs alone.
template <Bug kBug>
__global__ void unequal_teams(const float* x, float* y) {
  const unsigned t = threadIdx.x, team = t % 32 / 8;
  float sum = 0;
  for (unsigned row = 0; row <= team % 2; ++row) {
    const float value = x[t] + float(row);
    sum += __shfl_xor_sync(0xffffffffu, value, 1);
  }
  const unsigned lanes = kBug == Bug::kTwoShuffles ? 0xffffffffu : 0xffu << (8 * team);
  const float other = __shfl_xor_sync(lanes, sum, 2);
  y[blockIdx.x * blockDim.x + t] = sum + other;
}

template <Bug kBug>
__global__ void words(const float* x, float* y) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  const float* const from = x + i % 2048 * 2 + (kBug == Bug::kMisaligned ? 1 : 0);
  y[i] = float(*reinterpret_cast<const double*>(from));
}

template <Bug kBug>
__global__ void copy(const float* x, float* y) {
  ROOFTILE_SHARED(line, float[4096]);
  const unsigned t = threadIdx.x, n = blockDim.x;
  cuda::cp_async_16(&line[4 * t], x + 4 * t);
  cuda::cp_async_commit();
  if (kBug != Bug::kMissingWait) cuda::cp_async_wait<0>();
  if (kBug != Bug::kBarrierAfterWait) __syncthreads();
  y[blockIdx.x * n + t] = line[4 * (n - 1 - t)];
}

template <Bug kBug>
__global__ void copy_often(const float* x, float* y) {
  ROOFTILE_SHARED(line, float[2][4096]);
  const unsigned t = threadIdx.x, n = blockDim.x;
  float sum = 0;
  cuda::cp_async_16(&line[0][4 * t], x + 4 * t);
  cuda::cp_async_commit();
  for (int i = 0; i < 4; ++i) {
    if (i < 3) cuda::cp_async_16(&line[(i + 1) % 2][4 * t], x + 4 * t);
    cuda::cp_async_commit();
    cuda::cp_async_wait<1>();
    __syncthreads();
    sum += line[i % 2][4 * (n - 1 - t)];
    if (kBug != Bug::kBarrierBeforeCopy) __syncthreads();
  }
  y[blockIdx.x * n + t] = sum;
}

__device__ __noinline__ void fill(int* to, unsigned n) { to[threadIdx.x + n] = 1; }
template <Bug kBug, int N>
__global__ void overrun(const float*, float* y) {
  ROOFTILE_SHARED(line, int[N]);
  ROOFTILE_SHARED(other, int[N]);
  other[threadIdx.x] = 2;
  fill(line, kBug == Bug::kOverrun ? 1 : 0);
  __syncthreads();
  y[threadIdx.x] = float(other[threadIdx.x] + line[threadIdx.x == 0 ? 1 : threadIdx.x]);
}

template <Bug kBug>
__global__ void half_written(const float* x, float* y) {
  ROOFTILE_SHARED(line, float[1024]);
  const unsigned t = threadIdx.x, n = blockDim.x;
  if (kBug != Bug::kUnwritten || t % 2 == 0) line[t] = x[t];
  __syncthreads();
  y[blockIdx.x * n + t] = line[n - 1 - t];
}

template <Bug kBug>
__global__ void last_block(const float* x, float* y, unsigned* counter) {
  ROOFTILE_SHARED(last, bool);
  if (threadIdx.x == 0) {
    y[blockIdx.x] = x[blockIdx.x];
    if (kBug != Bug::kMissingFence) __threadfence();
    last = atomicAdd(counter, 1u) == gridDim.x - 1;
  }
  __syncthreads();
  if (last && threadIdx.x == 0)
    for (unsigned b = 1; b < gridDim.x; ++b) y[0] += y[b];
}

template <Bug kBug>
__global__ void one_word(const float*, float* y) {
  if (kBug == Bug::kBlocksCollide) {
    if (threadIdx.x == 0) y[0] = float(blockIdx.x);
  } else {
    if (threadIdx.x == 0) atomicAdd(y, float(blockIdx.x));
  }
}

template <Bug kBug>
__global__ void warp_exchange(const float* x, float* y) {
  ROOFTILE_SHARED(line, float[1024]);
  const unsigned t = threadIdx.x;
  line[t] = x[t];
  if (kBug != Bug::kMissingSyncwarp) __syncwarp();
  y[blockIdx.x * blockDim.x + t] = line[t ^ 1];
}

template <Bug kBug>
__global__ void volatile_tail(const float* x, float* y) {
  ROOFTILE_SHARED(line, float[1024]);
  const unsigned t = threadIdx.x;
  line[t] = x[t];
  __syncthreads();
  if (t < 32) {
    volatile float* v = line;
    for (unsigned d = 16; d > 0; d /= 2)
      if (t < d) v[t] = v[t] + v[t + d];
  }
  if (t == 0) y[blockIdx.x] = line[0];
}

template <Bug kBug>
__global__ void cluster_read(const float* x, float* y) {
  ROOFTILE_SHARED(mine, float[1024]);
  const unsigned t = threadIdx.x;
  mine[t] = x[t];
  if (kBug == Bug::kClusterBarrier)
    __syncthreads();
  else
    cuda::cluster_sync();
  y[blockIdx.x * blockDim.x + t] = *cuda::map_shared_rank(&mine[t], 1 - cuda::cluster_rank());
  cuda::cluster_sync();
}

template <Bug kBug>
__global__ void copy_own(const float* x, float* y) {
  ROOFTILE_SHARED(line, float[4096]);
  const unsigned t = threadIdx.x, first = blockIdx.x * 4096 + 4 * t;
  for (unsigned i = 0; i < 4; ++i) y[first + i] = x[first + i];
  cuda::cp_async_16(&line[4 * t], y + first);
  cuda::cp_async_commit();
  if (kBug != Bug::kSourceWritten) cuda::cp_async_wait<0>();
  y[first] = 0;
  if (kBug == Bug::kSourceWritten) cuda::cp_async_wait<0>();
  y[first + 1] = line[4 * t];
}

// Right programs that a checker might doubt.
__global__ void neighbours_in_a_word(const float*, float* y) {
  ROOFTILE_SHARED(bytes, unsigned char[4096]);
  ROOFTILE_SHARED(halves, unsigned short[2048]);
  const unsigned t = threadIdx.x, n = blockDim.x;
  bytes[t] = static_cast<unsigned char>(t);
  halves[t] = static_cast<unsigned short>(t);
  __syncthreads();
  y[blockIdx.x * n + t] = float(bytes[n - 1 - t] + halves[n - 1 - t]);
}
__global__ void histogram(const float*, float* y) {
  ROOFTILE_SHARED(bins, unsigned[32]);
  const unsigned t = threadIdx.x;
  if (t < 32) bins[t] = 0;
  __syncthreads();
  atomicAdd(&bins[t % 7], 1u);
  __syncthreads();
  if (t < 32) atomicAdd(&y[t], float(bins[t]));
}
__global__ void reduce(const float* x, float* y) {
  ROOFTILE_SHARED(parts, float[32]);
  const unsigned t = threadIdx.x;
  float s = x[t];
  for (int d = 16; d > 0; d /= 2) s += __shfl_xor_sync(~0u, s, d);
  if (t % 32 == 0) parts[t / 32] = s;
  __syncthreads();
  if (t < 32) {
    s = t < blockDim.x / 32 ? parts[t] : 0;
    for (int d = 16; d > 0; d /= 2) s += __shfl_xor_sync(~0u, s, d);
    if (t == 0) y[blockIdx.x] = s;
  }
}
__global__ void warp_tree(const float* x, float* y) {
  ROOFTILE_SHARED(line, float[1024]);
  const unsigned t = threadIdx.x, lane = t % 32;
  line[t] = x[t];
  __syncwarp();
  for (unsigned d = 16; d > 0; d /= 2) {
    if (lane < d) line[t] += line[t + d];
    __syncwarp();
  }
  if (lane == 0) y[blockIdx.x * blockDim.x / 32 + t / 32] = line[t];
}
__global__ void volatile_flag(const float* x, float* y, volatile unsigned* flags) {
  if (threadIdx.x != 0) return;
  if (blockIdx.x > 0)
    while (flags[blockIdx.x - 1] == 0) {
    }
  __threadfence();
  y[blockIdx.x] = blockIdx.x == 0 ? x[0] : y[blockIdx.x - 1] + 1;
  __threadfence();
  flags[blockIdx.x] = 1;
}
/// The last thread leaves a number and says so, the first one polls: whoever runs in between writes between
/// the call that observes an access and the access itself.
template <bool kVolatile>
__global__ void polled_flag(const float* x, float* y) {
  ROOFTILE_SHARED(number, float);
  ROOFTILE_SHARED(flag, unsigned);
  const unsigned t = threadIdx.x;
  if (t == 0) flag = 0;
  __syncthreads();
  if (t == blockDim.x - 1) {
    number = x[t];
    if constexpr (kVolatile) {
      __threadfence_block();
      *static_cast<volatile unsigned*>(&flag) = 1;
    } else {
      __atomic_store_n(&flag, 1u, __ATOMIC_RELEASE);
    }
  } else if (t == 0) {
    if constexpr (kVolatile) {
      while (*static_cast<volatile unsigned*>(&flag) == 0) {
      }
      __threadfence_block();
    } else {
      while (__atomic_load_n(&flag, __ATOMIC_ACQUIRE) == 0) {
      }
    }
    y[blockIdx.x] = number;
  }
}
__global__ void past_the_end(const float* x, float* y, int by) {
  y[threadIdx.x] = x[threadIdx.x + unsigned(by)];
}
}  // namespace

template <Bug kBug>
Status launch_bug(const Geometry& g, const Options& o, const float* x, float* y, unsigned* counter) {
  if constexpr (kBug == Bug::kOnlyBarrier) return launch(g, o, "reverse", &reverse<kBug>, x, y);
  if constexpr (kBug == Bug::kSecondBarrier) return launch(g, o, "reverse_often", &reverse_often<kBug>, x, y);
  if constexpr (kBug == Bug::kDivergentBarrier || kBug == Bug::kTwoBarriers)
    return launch(g, o, "half_wait", &half_wait<kBug>, x, y);
  if constexpr (kBug == Bug::kTwoShuffles) return launch(g, o, "unequal_teams", &unequal_teams<kBug>, x, y);
  if constexpr (kBug == Bug::kVolatileTail) return launch(g, o, "volatile_tail", &volatile_tail<kBug>, x, y);
  if constexpr (kBug == Bug::kMisaligned) return launch(g, o, "words", &words<kBug>, x, y);
  if constexpr (kBug == Bug::kMissingWait || kBug == Bug::kBarrierAfterWait)
    return launch(g, o, "copy", &copy<kBug>, x, y);
  if constexpr (kBug == Bug::kBarrierBeforeCopy) return launch(g, o, "copy_often", &copy_often<kBug>, x, y);
  if constexpr (kBug == Bug::kOverrun)
    return launch(g, o, "overrun",
                  g.block.x == 32    ? &overrun<kBug, 32>
                  : g.block.x == 256 ? &overrun<kBug, 256>
                                     : &overrun<kBug, 1024>,
                  x, y);
  if constexpr (kBug == Bug::kUnwritten) return launch(g, o, "half_written", &half_written<kBug>, x, y);
  if constexpr (kBug == Bug::kMissingFence)
    return launch(g, o, "last_block", &last_block<kBug>, x, y, counter);
  if constexpr (kBug == Bug::kBlocksCollide) return launch(g, o, "one_word", &one_word<kBug>, x, y);
  if constexpr (kBug == Bug::kMissingSyncwarp)
    return launch(g, o, "warp_exchange", &warp_exchange<kBug>, x, y);
  if constexpr (kBug == Bug::kClusterBarrier) return launch(g, o, "cluster_read", &cluster_read<kBug>, x, y);
  if constexpr (kBug == Bug::kSourceWritten) return launch(g, o, "copy_own", &copy_own<kBug>, x, y);
  return {};
}
Status launch_planted(Bug bug, const Geometry& g, const Options& o, const float* x, float* y,
                      unsigned* counter) {
  switch (bug) {
#define ROOFTILE_CASE(b) \
  case Bug::b:           \
    return launch_bug<Bug::b>(g, o, x, y, counter);
    ROOFTILE_CASE(kOnlyBarrier)
    ROOFTILE_CASE(kSecondBarrier)
    ROOFTILE_CASE(kDivergentBarrier)
    ROOFTILE_CASE(kTwoBarriers)
    ROOFTILE_CASE(kMissingWait)
    ROOFTILE_CASE(kBarrierAfterWait)
    ROOFTILE_CASE(kBarrierBeforeCopy)
    ROOFTILE_CASE(kOverrun)
    ROOFTILE_CASE(kUnwritten)
    ROOFTILE_CASE(kMissingFence)
    ROOFTILE_CASE(kBlocksCollide)
    ROOFTILE_CASE(kMissingSyncwarp)
    ROOFTILE_CASE(kClusterBarrier)
    ROOFTILE_CASE(kSourceWritten)
    ROOFTILE_CASE(kTwoShuffles)
    ROOFTILE_CASE(kVolatileTail)
    ROOFTILE_CASE(kMisaligned)
    case Bug::kNone:
      break;
  }
  return {};
}

Status launch_right(int which, const Geometry& g, const Options& o, const float* x, float* y,
                    unsigned* counter) {
  constexpr Bug kNone = Bug::kNone;
  switch (which) {
    case 0:
      return launch(g, o, "reverse", &reverse<kNone>, x, y);
    case 1:
      return launch(g, o, "reverse_often", &reverse_often<kNone>, x, y);
    case 2:
      return launch(g, o, "half_wait", &half_wait<kNone>, x, y);
    case 3:
      return launch(g, o, "copy", &copy<kNone>, x, y);
    case 4:
      return launch(g, o, "copy_often", &copy_often<kNone>, x, y);
    case 5:
      return launch({1, g.block}, o, "overrun", &overrun<kNone, 1024>, x, y);
    case 6:
      return launch(g, o, "half_written", &half_written<kNone>, x, y);
    case 7:
      return launch(g, o, "last_block", &last_block<kNone>, x, y, counter);
    case 8:
      return launch(g, o, "one_word", &one_word<kNone>, x, y);
    case 9:
      return launch(g, o, "warp_exchange", &warp_exchange<kNone>, x, y);
    case 10:
      return launch(g, o, "cluster_read", &cluster_read<kNone>, x, y);
    case 11:
      return launch(g, o, "neighbours_in_a_word", &neighbours_in_a_word, x, y);
    case 12:
      return launch(g, o, "histogram", &histogram, x, y);
    case 13:
      return launch(g, o, "reduce", &reduce, x, y);
    case 14:
      return launch(g, o, "warp_tree", &warp_tree, x, y);
    case 15:
      return launch({2, g.block}, o, "copy_own", &copy_own<kNone>, x, y);
    case 16:
      return launch(g, o, "polled_flag", &polled_flag<true>, x, y);
    case 17:
      return launch(g, o, "polled_flag", &polled_flag<false>, x, y);
    case 18:
      return launch(g, o, "unequal_teams", &unequal_teams<kNone>, x, y);
    case 19:
      return launch(g, o, "words", &words<kNone>, x, y);
    default:
      return launch(g, o, "volatile_flag", &volatile_flag, x, y, counter);
  }
}
Status launch_past_the_end(const Geometry& g, const float* x, float* y, int by) {
  return launch(g, Options{}, "past_the_end", &past_the_end, x, y, by);
}

}  // namespace rooftile::emulated::test
