// Kernels of engine_test.cpp, and their launches.
#include "tests/emulated/engine.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include "rooftile/backend/cuda/ptx.h"
#include "rooftile/backend/cuda/shared.h"

namespace rooftile::emulated::test {
namespace {
__global__ void indices(unsigned* out) {
  const unsigned block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
  const unsigned thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
  const unsigned threads = blockDim.x * blockDim.y * blockDim.z;
  __syncthreads();
  out[block * threads + thread] = threadIdx.x + 100 * threadIdx.y + 10000 * threadIdx.z +
                                  1000000 * (blockIdx.x + 10 * blockIdx.y + 100 * blockIdx.z);
}

template <class A, class B>
struct Pair {
  A v;
  B w;
};
template <int N>
__device__ float reversed(float value) {
  ROOFTILE_SHARED(line, float[N]);
  __syncthreads();
  line[threadIdx.x] = value;
  __syncthreads();
  return line[N - 1 - threadIdx.x];
}
__global__ void reverse(const float* x, float* y, int times) {
  ROOFTILE_SHARED(other, Pair<float[7], int>);
  if (threadIdx.x < 7) other.v[threadIdx.x] = 1;
  float value = x[blockIdx.x * blockDim.x + threadIdx.x];
  for (int i = 0; i < times; ++i) value = blockDim.x == 64 ? reversed<64>(value) : reversed<256>(value);
  y[blockIdx.x * blockDim.x + threadIdx.x] = value + other.v[3] - 1;
}

__global__ void warp_functions(int* out) {
  const unsigned t = threadIdx.x, lane = t % 32;
  int i = 0;
  const auto put = [&](auto value) { out[i++ * blockDim.x + t] = static_cast<int>(value); };
  put(__shfl_sync(~0u, t, 3));
  put(__shfl_sync(~0u, t, 3, 8));
  put(__shfl_up_sync(~0u, t, 2));
  put(__shfl_down_sync(~0u, t, 5, 16));
  put(__shfl_xor_sync(~0u, t, 16));
  put(__shfl_xor_sync(~0u, double(t), 1));
  put(__shfl_sync(~0u, static_cast<unsigned char>(lane), lane + 1));
  put(__ballot_sync(~0u, lane % 3 == 0));
  put(__any_sync(~0u, lane == 5));
  put(__all_sync(~0u, lane != 5));
  put(__match_any_sync(~0u, lane / 4));
  put(__reduce_add_sync(~0u, lane));
  put(__reduce_max_sync(~0u, int(lane) - 40));
  put(__reduce_min_sync(~0u, int(lane) - 40));
  // Two halves of a warp, each by itself, a different number of times.
  int sum = 0;
  if (lane < 16) {
    for (int k = 0; k < 3; ++k) sum += __shfl_xor_sync(0xffffu, int(lane), 1);
  } else {
    for (int k = 0; k < 5; ++k) sum += __shfl_xor_sync(0xffff0000u, int(lane), 2);
  }
  put(sum);
  put(__syncthreads_count(t % 3 == 0));
  put(__syncthreads_and(t < 1000));
  put(__syncthreads_or(t > 1000));
  __syncwarp();
  put(__popc(__activemask()));
}

__global__ void early_exit(int* out) {
  if (threadIdx.x % 2 == 1) return;
  __syncthreads();
  out[threadIdx.x] = __shfl_down_sync(~0u, int(threadIdx.x), 2);
}

__global__ void last_block(const float* x, float* partial, float* sum, unsigned* counter, int n) {
  ROOFTILE_SHARED(parts, float[32]);
  ROOFTILE_SHARED(last, bool);
  float s = 0;
  for (int i = threadIdx.x + blockIdx.x * blockDim.x; i < n; i += blockDim.x * gridDim.x) s += x[i];
  for (int d = 16; d > 0; d /= 2) s += __shfl_xor_sync(~0u, s, d);
  if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = s;
  __syncthreads();
  if (threadIdx.x == 0) {
    for (unsigned w = 1; w < blockDim.x / 32; ++w) s += parts[w];
    partial[blockIdx.x] = s;
    __threadfence();
    last = atomicInc(counter, gridDim.x - 1) == gridDim.x - 1;
  }
  __syncthreads();
  if (last && threadIdx.x == 0) {
    s = 0;
    for (unsigned b = 0; b < gridDim.x; ++b) s += partial[b];
    *sum = s;
  }
}

__global__ void wait_for_lower(unsigned* flags, unsigned* out) {
  if (threadIdx.x == 0) {
    if (blockIdx.x > 0)
      while (cuda::load_acquire(&flags[blockIdx.x - 1]) == 0) {
      }
    out[blockIdx.x] = blockIdx.x == 0 ? 1 : out[blockIdx.x - 1] + 1;
    cuda::store_release(&flags[blockIdx.x], 1);
  }
}
__global__ void wait_for_higher(unsigned* flags) {
  if (blockIdx.x == 0)
    while (atomicAdd(&flags[1], 0u) == 0) {
    }
  atomicExch(&flags[blockIdx.x], 1u);
}
__global__ void spin_lock(unsigned* lock, int* count) {
  for (bool done = false; !done;)
    if (atomicCAS(lock, 0u, 1u) == 0) {
      __threadfence();
      ++*count;
      __threadfence();
      atomicExch(lock, 0u);
      done = true;
    }
}
__global__ void deadlock() {
  if (threadIdx.x < 32)
    __syncthreads();
  else
    __shfl_sync(~0u, 1, 0);  // lanes 0 of warp 1 ended: the rest wait for nobody; lane 33 waits for all
  if (threadIdx.x >= 32) cuda::named_barrier_sync(3, 64);
}
__global__ void two_kinds_of_shuffle(int* out) {
  const int t = int(threadIdx.x);
  int other = 0;
  if (t < 16)
    other = __shfl_up_sync(~0u, t, 1);
  else
    other = __shfl_xor_sync(~0u, t, 1);
  out[t] = other;
}
__global__ void trap_at(int thread) {
  if (int(threadIdx.x) == thread) __trap();
}
__global__ void assert_below(int limit) { assert(int(threadIdx.x) < limit); }
__global__ void overrun(int by) {
  ROOFTILE_SHARED(line, int[32]);
  int* p = line;
  asm("" : "+r"(p));
  p[threadIdx.x + by] = 1;
}
__global__ void static_shared_49k() {
  ROOFTILE_SHARED(a, float[6 << 10]);
  ROOFTILE_SHARED(b, float[6 << 10]);
  ROOFTILE_SHARED(c, float[256]);
  a[0] = b[0] = c[0] = 0;
}
__global__ void dynamic_sum(int* out) {
  ROOFTILE_DYNAMIC_SHARED(bytes);
  int* line = reinterpret_cast<int*>(bytes);
  line[threadIdx.x] = int(threadIdx.x);
  __syncthreads();
  int sum = 0;
  for (unsigned i = 0; i < blockDim.x; ++i) sum += line[i];
  out[threadIdx.x] =
      sum + int(__cvta_generic_to_shared(line)) + int(reinterpret_cast<std::uintptr_t>(bytes) % 1024);
}
__global__ void poison(float* out) {
  ROOFTILE_SHARED(line, float[32]);
  out[threadIdx.x] = line[threadIdx.x];
}

template <bool kWait>
__global__ void async_double_buffer(const float4* x, float4* y, int tiles) {
  ROOFTILE_SHARED(buffer, float4[2][32]);
  const unsigned t = threadIdx.x;
  cuda::cp_async_16(&buffer[0][t], &x[t]);
  cuda::cp_async_commit();
  for (int i = 0; i < tiles; ++i) {
    if (i + 1 < tiles) cuda::cp_async_16(&buffer[(i + 1) % 2][t], &x[(i + 1) * 32 + t], i % 2 == 0 ? 16 : 8);
    cuda::cp_async_commit();
    if (kWait) cuda::cp_async_wait<1>();
    __syncthreads();
    y[i * 32 + t] = buffer[i % 2][31 - t];
    __syncthreads();
  }
}

// A producer warp fills a ring of stages with bulk copies; a consumer warp empties it.
__global__ void ring(const float* x, float* y, int tiles) {
  constexpr int kStages = 3;
  ROOFTILE_SHARED(stages, float[kStages][32]);
  ROOFTILE_SHARED(full, std::uint64_t[kStages]);
  ROOFTILE_SHARED(empty, std::uint64_t[kStages]);
  if (threadIdx.x == 0) {
    for (int s = 0; s < kStages; ++s) {
      cuda::mbarrier_init(&full[s], 1);
      cuda::mbarrier_init(&empty[s], 32);
    }
    cuda::fence_mbarrier_init();
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    for (int i = 0; i < tiles; ++i) {
      const int s = i % kStages;
      if (i >= kStages) cuda::mbarrier_wait(&empty[s], (i / kStages - 1) & 1);
      cuda::mbarrier_arrive_expect_tx(&full[s], 128);
      cuda::bulk_copy_global_to_shared(&stages[s], x + i * 32, 128, &full[s]);
    }
  } else if (threadIdx.x >= 32) {
    const unsigned t = threadIdx.x - 32;
    for (int i = 0; i < tiles; ++i) {
      const int s = i % kStages;
      cuda::mbarrier_wait(&full[s], (i / kStages) & 1);
      y[i * 32 + t] = 2 * stages[s][t];
      cuda::mbarrier_arrive(&empty[s]);
    }
  }
}

__global__ void cluster_sum(float* out) {
  ROOFTILE_SHARED(mine, float);
  if (threadIdx.x == 0) mine = float(cuda::cluster_rank() + 1);
  cuda::cluster_sync();
  float sum = 0;
  for (unsigned r = 0; r < cuda::cluster_size(); ++r) sum += *cuda::map_shared_rank(&mine, r);
  cuda::cluster_sync();
  out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

// Rounds in which each block sends its number to all blocks, and waits for theirs; two places in turn.
template <bool kWait>
__global__ void cluster_send(float* out, int rounds) {
  constexpr int kMax = 8;
  ROOFTILE_SHARED(places, float[2][kMax]);
  ROOFTILE_SHARED(arrived, std::uint64_t[2]);
  const unsigned rank = cuda::cluster_rank(), blocks = cuda::cluster_size();
  if (threadIdx.x == 0) {
    cuda::mbarrier_init(&arrived[0], 1);
    cuda::mbarrier_init(&arrived[1], 1);
    cuda::fence_mbarrier_init();
  }
  cuda::cluster_sync();
  float sum = 0;
  for (int i = 0; i < rounds; ++i) {
    if (threadIdx.x == 0) cuda::mbarrier_arrive_expect_tx(&arrived[i % 2], 4 * blocks);
    if (threadIdx.x < blocks)
      cuda::store_async_at(&places[i % 2][rank], float(rank + i), &arrived[i % 2], threadIdx.x);
    if (kWait) cuda::mbarrier_wait(&arrived[i % 2], i / 2 % 2);
    for (unsigned r = 0; r < blocks; ++r) sum += places[i % 2][r];
    __syncthreads();
  }
  out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

__global__ void named(int* out) {
  ROOFTILE_SHARED(a, int[64]);
  const unsigned t = threadIdx.x, warp = t / 32;
  if (warp < 2) {  // warps 0 and 1 exchange; warp 0 tells warp 2, and does not wait for it
    a[t] = int(t);
    cuda::named_barrier_sync(1, 64);
    out[t] = a[63 - t];
    // Only thread 40's predicate holds, then none: each vote is of its own round.
    if (!cuda::named_barrier_or(1, 64, t == 40) || cuda::named_barrier_or(1, 64, false)) out[t] = -1;
    if (warp == 0) cuda::named_barrier_arrive(2, 64);
  } else {
    cuda::named_barrier_sync(2, 64);
    out[t] = a[t - 64];
  }
}

__global__ void convert(const float* x, unsigned short* half_bits, unsigned short* bfloat_bits, int n) {
  const int i = int(blockIdx.x * blockDim.x + threadIdx.x);
  if (i >= n) return;
  half_bits[i] = __half_as_ushort(__float2half_rn(x[i]));
  bfloat_bits[i] = __bfloat16_as_ushort(__float2bfloat16_rn(x[i]));
}
__global__ void widen_half(const unsigned short* x, float* y) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  y[i] = __half2float(__ushort_as_half(x[i]));
}
__global__ void count_atomics(int* i, unsigned* u, unsigned long long* l, float* f, double* d) {
  atomicAdd(i, -1);
  atomicAdd(u, 2u);
  atomicMax(l, static_cast<unsigned long long>(threadIdx.x));
  atomicAdd(f, 0.5f);
  atomicAdd(d, 0.25);
}
struct Arguments {
  int values[20];
};
__global__ void by_value(Arguments a, int* out) {
  a.values[0] += int(threadIdx.x);
  __syncthreads();
  out[threadIdx.x] = a.values[0] + a.values[19];
}
__global__ void two_barriers(float* x) {
  ROOFTILE_SHARED(s, float[1024]);
  s[threadIdx.x] = 1;
  __syncthreads();
  const float v = s[blockDim.x - 1 - threadIdx.x];
  __syncthreads();
  if (v == 0) x[0] = 1;
}
__global__ void nothing(float*) {}
__global__ void shuffles(float* x) {
  float v = 1;
  for (int i = 0; i < 32; ++i) v = __shfl_xor_sync(~0u, v, 1);
  if (v == 0) x[0] = 1;
}
}  // namespace

#define G const Geometry &g, const Options &o

namespace launch_of {
Status indices(G, unsigned* out) { return launch(g, o, "indices", &test::indices, out); }
Status reverse(G, const float* x, float* y, int times) {
  return launch(g, o, "reverse", &test::reverse, x, y, times);
}
Status warp_functions(G, int* out) { return launch(g, o, "warp_functions", &test::warp_functions, out); }
Status early_exit(G, int* out) { return launch(g, o, "early_exit", &test::early_exit, out); }
Status last_block(G, const float* x, float* partial, float* sum, unsigned* counter, int n) {
  return launch(g, o, "last_block", &test::last_block, x, partial, sum, counter, n);
}
Status wait_for_lower(G, unsigned* flags, unsigned* out) {
  return launch(g, o, &test::wait_for_lower, flags, out);
}
Status wait_for_higher(G, unsigned* flags) {
  return launch(g, o, "wait_for_higher", &test::wait_for_higher, flags);
}
Status spin_lock(G, unsigned* lock, int* count) { return launch(g, o, &test::spin_lock, lock, count); }
Status deadlock(G) { return launch(g, o, "deadlock", &test::deadlock); }
Status two_kinds_of_shuffle(G, int* out) {
  return launch(g, o, "two_kinds_of_shuffle", &test::two_kinds_of_shuffle, out);
}
Status trap_at(G, int thread) { return launch(g, o, "trap_at", &test::trap_at, thread); }
Status assert_below(G, int limit) { return launch(g, o, "assert_below", &test::assert_below, limit); }
Status overrun(G, int by) { return launch(g, o, "overrun", &test::overrun, by); }
Status static_shared_49k(G) { return launch(g, o, "static_shared_49k", &test::static_shared_49k); }
Status dynamic_sum(G, int* out) { return launch(g, o, "dynamic_sum", &test::dynamic_sum, out); }
Status poison(G, float* out) { return launch(g, o, &test::poison, out); }
Status async_double_buffer(G, bool waits, const float* x, float* y, int tiles) {
  return launch(g, o, waits ? &test::async_double_buffer<true> : &test::async_double_buffer<false>,
                reinterpret_cast<const float4*>(x), reinterpret_cast<float4*>(y), tiles);
}
Status ring(G, const float* x, float* y, int tiles) { return launch(g, o, "ring", &test::ring, x, y, tiles); }
Status cluster_send(G, float* out, int rounds, bool waits) {
  return launch(g, o, "cluster_send", waits ? &test::cluster_send<true> : &test::cluster_send<false>, out,
                rounds);
}
Status cluster_sum(G, float* out) { return launch(g, o, "cluster_sum", &test::cluster_sum, out); }
Status named(G, int* out) { return launch(g, o, "named", &test::named, out); }
Status convert(G, const float* x, unsigned short* half_bits, unsigned short* bfloat_bits, int n) {
  return launch(g, o, "convert", &test::convert, x, half_bits, bfloat_bits, n);
}
Status widen_half(G, const unsigned short* x, float* y) { return launch(g, o, &test::widen_half, x, y); }
Status count_atomics(G, int* i, unsigned* u, unsigned long long* l, float* f, double* d) {
  return launch(g, o, "count_atomics", &test::count_atomics, i, u, l, f, d);
}
Status by_value(G, int* out) {
  Arguments a{};
  a.values[0] = 5;
  a.values[19] = 7;
  return launch(g, o, "by_value", &test::by_value, a, out);
}
Status two_barriers(G, float* x) { return launch(g, o, "two_barriers", &test::two_barriers, x); }
Status nothing(G, float* x) { return launch(g, o, "nothing", &test::nothing, x); }
Status shuffles(G, float* x) { return launch(g, o, "shuffles", &test::shuffles, x); }
}  // namespace launch_of
}  // namespace rooftile::emulated::test
