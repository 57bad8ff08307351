// Kernels of Hopper's asynchronous units: a product by a pipeline of copies and wgmma, into which mistakes
// can be planted, and what it is made of, alone.
#include "tests/emulated/hopper.h"

#include <cuda_runtime.h>

#include "rooftile/backend/cuda/hopper.h"
#include "rooftile/backend/cuda/shared.h"
#include "rooftile/core/dtype.h"

namespace rooftile::emulated::test {
namespace {
using cuda::Major;
using cuda::Swizzle;
using cuda::TensorMap;
constexpr int kM = 128, kN = 128, kK = 64, kStages = 4, kConsumers = 2, kCluster = 2;

struct Memory {
  bf16 a[kStages][kM * kK], b[kStages][kN * kK];
  bf16 c[kConsumers * 4][16 * 64];  // of each warp
  std::uint64_t full[kStages], empty[kStages];
};
struct Ring {
  int slot = 0;
  unsigned phase = 0;
  __device__ void next() {
    if (++slot == kStages) slot = 0, phase ^= 1;
  }
};

__device__ void produce(Memory& shared, const TensorMap& a, const TensorMap& b, int column, int k, Bug bug) {
  const int rank = static_cast<int>(cuda::cluster_rank());
  const unsigned whole = (kM + kN) * kK * sizeof(bf16);
  const unsigned expected = bug == Bug::kExpectsABoxLess ? whole - kN / kCluster * kK * 2
                            : bug == Bug::kExpects16Less ? whole - 16
                            : bug == Bug::kExpects16More ? whole + 16
                                                         : whole;
  const unsigned mask = bug == Bug::kToFirstBlock    ? 1
                        : bug == Bug::kToOwnBlock    ? 1u << rank
                        : bug == Bug::kBeyondCluster ? 7
                                                     : 3;
  if (bug == Bug::kOneSliceTooFar) k += kK;
  Ring ring;
  for (int x = 0; x < k; x += kK, ring.next()) {
    std::uint64_t* full = &shared.full[ring.slot];
    if (bug != Bug::kNoEmptyWait)
      cuda::mbarrier_wait(&shared.empty[ring.slot], ring.phase ^ (bug == Bug::kProducersParity ? 0 : 1));
    cuda::mbarrier_arrive_expect_tx(full, expected);
    cuda::tensor_load(shared.a[ring.slot], &a, full, {x, rank * kM});
    cuda::tensor_load_to_all(shared.b[ring.slot] + rank * (kN / kCluster) * kK, &b, full,
                             {x, column + rank * (kN / kCluster)}, static_cast<std::uint16_t>(mask));
  }
}

__device__ void release(Memory& shared, int slot, Bug bug) {
  const unsigned thread = threadIdx.x % 128;
  if (thread < kCluster || bug == Bug::kEachThreadReleases)
    cuda::mbarrier_arrive_at_relaxed(&shared.empty[slot], thread % kCluster);
}

/// A warp's 16 rows by 64 columns, swizzled.
__device__ void stage(bf16* buffer, const float* d) {
  const int lane = static_cast<int>(threadIdx.x % 32), row = lane % 16;
  for (int c = 0; c < 8; c += 2, d += 8) {
    const unsigned words[4] = {cuda::pack<bf16>(d[0], d[1]), cuda::pack<bf16>(d[2], d[3]),
                               cuda::pack<bf16>(d[4], d[5]), cuda::pack<bf16>(d[6], d[7])};
    cuda::store_matrix(buffer + row * 64 + ((c + lane / 16) ^ (row % 8)) * 8, words);
  }
}

__device__ void consume(Memory& shared, const TensorMap& c, int column, int k, Bug bug) {
  const int consumer = static_cast<int>(threadIdx.x / 128) - 1,
            warp = static_cast<int>(threadIdx.x % 128 / 32);
  const bool first_lane = threadIdx.x % 32 == 0;
  float sums[kN / 2];
  Ring ring;
  int before = 0;
  for (int x = 0; x < k; x += kK, ring.next()) {
    if (bug != Bug::kNoFullWait)
      cuda::mbarrier_wait(&shared.full[ring.slot], ring.phase ^ (bug == Bug::kConsumersParity ? 1 : 0));
    const unsigned stride = bug == Bug::kStride ? 512 : 1024;
    const std::uint64_t a =
        cuda::wgmma_descriptor(shared.a[ring.slot] + consumer * 64 * kK, 16, stride, Swizzle::k128);
    const std::uint64_t b = cuda::wgmma_descriptor(shared.b[ring.slot], 16, stride,
                                                   bug == Bug::kSwizzle ? Swizzle::k64 : Swizzle::k128);
    cuda::wgmma_pin(sums);
    if (bug != Bug::kNoWgmmaFence) cuda::wgmma_fence();
    for (unsigned i = 0; i < kK / 16; ++i)
      cuda::wgmma<bf16, kN>(sums, cuda::advance_descriptor(a, 32 * i), cuda::advance_descriptor(b, 32 * i),
                            x > 0 || i > 0);
    if (bug != Bug::kNoCommit) cuda::wgmma_commit();
    if (bug == Bug::kOperandOverwritten && threadIdx.x == 200) shared.a[ring.slot][70].bits = 0;
    cuda::wgmma_pin(sums);
    if (x > 0) {
      if (bug == Bug::kReleasedBeforeWait) release(shared, before, bug);
      if (bug == Bug::kOneGroupTooMany)
        cuda::wgmma_wait<2>();
      else
        cuda::wgmma_wait<1>();
      if (bug != Bug::kReleasedBeforeWait) release(shared, before, bug);
    }
    before = ring.slot;
  }
  if (bug == Bug::kSumChanged) sums[5] += 1;
  if (bug != Bug::kNoLastWait) cuda::wgmma_wait<0>();
  cuda::wgmma_pin(sums);
  release(shared, before, bug);

  bf16* const buffer = shared.c[consumer * 4 + warp];
  const int row = static_cast<int>(cuda::cluster_rank()) * kM + consumer * 64 + warp * 16;
  for (int i = 0; i < kN / 64; ++i) {
    if (first_lane && bug != Bug::kBufferUsedAgain) cuda::tensor_store_wait_read<0>();
    __syncwarp();
    stage(buffer, sums + i * 32);
    if (bug != Bug::kNoProxyFence) cuda::fence_proxy_async();
    __syncwarp();
    if (first_lane) {
      cuda::tensor_store(&c, {column + i * 64, row}, buffer);
      cuda::tensor_store_commit();
    }
  }
  if (first_lane && bug != Bug::kStoresLeft) cuda::tensor_store_wait_read<0>();
}

__global__ void __launch_bounds__(128 * (1 + kConsumers), 1)
    product(const __grid_constant__ TensorMap a, const __grid_constant__ TensorMap b,
            const __grid_constant__ TensorMap c, int k, Bug bug) {
  ROOFTILE_DYNAMIC_SHARED(memory);
  Memory& shared = *reinterpret_cast<Memory*>(memory);
  const int column = static_cast<int>(blockIdx.x / kCluster) * kN;
  if (threadIdx.x == 0) {
    cuda::prefetch_tensor_map(&a);
    for (int i = 0; i < kStages; ++i) {
      cuda::mbarrier_init(&shared.full[i], 1);
      cuda::mbarrier_init(&shared.empty[i],
                          kConsumers * kCluster - (bug == Bug::kEmptyCountsOneLess ? 1 : 0));
    }
    if (bug != Bug::kNoInitFence) cuda::fence_mbarrier_init();
  }
  if (bug == Bug::kNoClusterBarrierAtStart)
    __syncthreads();
  else
    cuda::cluster_sync();
  if (threadIdx.x < 128) {
    if (bug != Bug::kRegistersNotGiven) cuda::give_registers<40>();
    if (threadIdx.x < 32 && cuda::elect_one()) produce(shared, a, b, column, k, bug);
  } else {
    if (bug == Bug::kTooManyRegisters)
      cuda::take_registers<240>();
    else
      cuda::take_registers<232>();
    consume(shared, c, column, k, bug);
  }
  if (bug != Bug::kNoClusterBarrierAtEnd) cuda::cluster_sync();
}

/// Boxes of the operand side by side, as wide as the swizzle; their bytes.
__device__ unsigned load_operand(std::byte* to, const TensorMap& map, launch_of::Operand o,
                                 unsigned row_bytes, int element_bytes, std::uint64_t* barrier) {
  const int width = static_cast<int>(row_bytes) / element_bytes, depth = 32 / element_bytes;
  const int rows = o.mn_major ? depth : o.extent, across = o.mn_major ? o.extent : depth;
  unsigned bytes = 0;
  for (int x = 0; x < across; x += width, bytes += static_cast<unsigned>(rows) * row_bytes)
    cuda::tensor_load(to + bytes, &map, barrier, {x, 0});
  return bytes;
}
__device__ std::uint64_t describe(const std::byte* at, launch_of::Operand o, Swizzle swizzle) {
  const unsigned row_bytes = cuda::row_bytes(swizzle), group = 8 * row_bytes;
  const unsigned box = static_cast<unsigned>(o.mn_major ? 16 : o.extent) * row_bytes;
  const bool exchanged = swizzle == Swizzle::kNone && o.mn_major;
  return cuda::advance_descriptor(
      cuda::wgmma_descriptor(at, exchanged ? group : box, exchanged ? box : group, swizzle),
      static_cast<unsigned>(o.first_k));
}
template <class Sum, int N>
__device__ void write_out(const Sum (&d)[N], Sum* out) {
  const unsigned thread = threadIdx.x;
  for (unsigned i = 0; i < N; ++i)
    out[(thread / 32 * 16 + thread % 32 / 4 + i % 4 / 2 * 8) * (2 * N) + i / 4 * 8 + thread % 4 * 2 + i % 2] =
        d[i];
}

template <class T, int N, Major kA = Major::kK, Major kB = Major::kK, class U = T>
__global__ void one_wgmma(const __grid_constant__ TensorMap a, const __grid_constant__ TensorMap b,
                          Swizzle swizzle, launch_of::Operand a_form, launch_of::Operand b_form,
                          cuda::WgmmaSum<T>* out) {
  ROOFTILE_DYNAMIC_SHARED(memory);
  ROOFTILE_SHARED(barrier, std::uint64_t);
  if (threadIdx.x == 0) {
    cuda::mbarrier_init(&barrier, 1);
    cuda::fence_mbarrier_init();
    const unsigned row_bytes = cuda::row_bytes(swizzle);
    unsigned bytes = load_operand(memory, a, a_form, row_bytes, sizeof(T), &barrier);
    bytes += load_operand(memory + 16384, b, b_form, row_bytes, sizeof(T), &barrier);
    cuda::mbarrier_arrive_expect_tx(&barrier, bytes);
  }
  __syncthreads();
  cuda::mbarrier_wait(&barrier, 0);
  cuda::WgmmaSum<T> d[N / 2];
  cuda::wgmma_fence();
  const std::uint64_t left = describe(memory, a_form, swizzle),
                      right = describe(memory + 16384, b_form, swizzle);
  if constexpr (std::is_same_v<T, f8e4m3> || std::is_same_v<T, f8e5m2>)
    cuda::wgmma_f8<T, U, N>(d, left, right, false);
  else
    cuda::wgmma<T, N, kA, kB>(d, left, right, false);
  cuda::wgmma_commit();
  cuda::wgmma_wait<0>();
  write_out(d, out);
}

__global__ void registers_wgmma(const unsigned* words, const __grid_constant__ TensorMap b, bool changed,
                                float* out) {
  ROOFTILE_DYNAMIC_SHARED(memory);
  ROOFTILE_SHARED(barrier, std::uint64_t);
  if (threadIdx.x == 0) {
    cuda::mbarrier_init(&barrier, 1);
    cuda::fence_mbarrier_init();
    cuda::mbarrier_arrive_expect_tx(&barrier, 2048);
    cuda::tensor_load(memory, &b, &barrier, {0, 0});
  }
  __syncthreads();
  cuda::mbarrier_wait(&barrier, 0);
  unsigned a[4];
  const unsigned row = threadIdx.x / 32 * 16 + threadIdx.x % 32 / 4;
  for (unsigned i = 0; i < 4; ++i) a[i] = words[(row + i % 2 * 8) * 8 + threadIdx.x % 4 + i / 2 * 4];
  float d[32];
  for (float& x : d) x = 1;
  cuda::wgmma_pin(a);
  cuda::wgmma_fence();
  cuda::wgmma<bf16, 64, Major::kMn>(d, a, cuda::wgmma_descriptor(memory, 16, 1024, Swizzle::k128), true);
  cuda::wgmma_commit();
  if (changed && threadIdx.x == 77) a[2] ^= 1;
  cuda::wgmma_pin(a);
  cuda::wgmma_wait<0>();
  write_out(d, out);
}

template <int kRank>
__global__ void copy_box(const __grid_constant__ TensorMap map, int x, int y, int z, int v, int w,
                         unsigned bytes, std::byte* out) {
  ROOFTILE_DYNAMIC_SHARED(memory);
  ROOFTILE_SHARED(barrier, std::uint64_t);
  if (threadIdx.x == 0) {
    cuda::mbarrier_init(&barrier, 1);
    cuda::fence_mbarrier_init();
    cuda::mbarrier_arrive_expect_tx(&barrier, bytes);
    if constexpr (kRank == 1) cuda::tensor_load(memory, &map, &barrier, {x});
    if constexpr (kRank == 2) cuda::tensor_load(memory, &map, &barrier, {x, y});
    if constexpr (kRank == 3) cuda::tensor_load(memory, &map, &barrier, {x, y, z});
    if constexpr (kRank == 4) cuda::tensor_load(memory, &map, &barrier, {x, y, z, v});
    if constexpr (kRank == 5) cuda::tensor_load(memory, &map, &barrier, {x, y, z, v, w});
  }
  __syncthreads();
  cuda::mbarrier_wait(&barrier, 0);
  for (unsigned i = threadIdx.x; i < bytes; i += blockDim.x) out[i] = memory[i];
}

__global__ void phases(unsigned* seen) {
  ROOFTILE_SHARED(barrier, std::uint64_t);
  ROOFTILE_SHARED(count, unsigned);
  if (threadIdx.x == 0) {
    cuda::mbarrier_init(&barrier, 2);
    cuda::fence_mbarrier_init();
    count = 0;
  }
  __syncthreads();
  if (cuda::elect_one()) atomicAdd(&seen[0], 1);
  if (threadIdx.x == 0) {
    cuda::mbarrier_wait(&barrier, 1);  // the phase before the first is over
    for (unsigned i = 0; i < 3; ++i) {
      count = i + 1;
      cuda::mbarrier_arrive(&barrier);
      cuda::mbarrier_wait(&barrier, i % 2);
    }
  }
  if (threadIdx.x == 32)
    for (unsigned i = 0; i < 3; ++i) {
      cuda::mbarrier_arrive(&barrier);
      cuda::mbarrier_wait(&barrier, i % 2);
      if (i == 0) seen[1] = count;
    }
  __syncthreads();
  if (threadIdx.x == 0) seen[2] = count;
}
}  // namespace

namespace launch_of {
#define G const Geometry &g, const Options &o
Status product(G, const TensorMap& a, const TensorMap& b, const TensorMap& c, int columns, int k, Bug bug) {
  Geometry geometry = g;
  geometry.grid = dim3(static_cast<unsigned>(kCluster * ((columns + kN - 1) / kN)));
  geometry.block = dim3(128 * (1 + kConsumers));
  geometry.dynamic_shared = sizeof(Memory);
  geometry.cluster = kCluster;
  return launch(geometry, o, "product", &test::product, a, b, c, k, bug);
}
Status one_wgmma(G, Element type, Element b_type, const TensorMap& a, const TensorMap& b, Swizzle swizzle,
                 Operand x, Operand y, void* out) {
  constexpr Major k = Major::kK, mn = Major::kMn;
  if (type == Element::kI8)
    return launch(g, o, "one_wgmma", &test::one_wgmma<std::int8_t, 48, k, k>, a, b, swizzle, x, y,
                  static_cast<int*>(out));
  auto* kernel = x.mn_major
                     ? (y.mn_major ? &test::one_wgmma<bf16, 48, mn, mn> : &test::one_wgmma<bf16, 48, mn, k>)
                     : (y.mn_major ? &test::one_wgmma<bf16, 48, k, mn> : &test::one_wgmma<bf16, 48, k, k>);
  if (type == Element::kF16) kernel = &test::one_wgmma<f16, 256, k, k>;
  if (type == Element::kTf32) kernel = &test::one_wgmma<tf32, 48, k, k>;
  const bool large = b_type == Element::kE5m2;
  if (type == Element::kE4m3)
    kernel = large ? &test::one_wgmma<f8e4m3, 128, k, k, f8e5m2> : &test::one_wgmma<f8e4m3, 128>;
  if (type == Element::kE5m2)
    kernel = large ? &test::one_wgmma<f8e5m2, 128> : &test::one_wgmma<f8e5m2, 128, k, k, f8e4m3>;
  return launch(g, o, "one_wgmma", kernel, a, b, swizzle, x, y, static_cast<float*>(out));
}
Status registers_wgmma(G, const std::uint32_t* words, const TensorMap& b, bool changed, float* out) {
  return launch(g, o, "registers_wgmma", &test::registers_wgmma, words, b, changed, out);
}
Status copy_box(G, const TensorMap& map, int rank, const int* at, unsigned bytes, std::byte* out) {
  auto* kernel = rank == 1   ? &test::copy_box<1>
                 : rank == 2 ? &test::copy_box<2>
                 : rank == 3 ? &test::copy_box<3>
                 : rank == 4 ? &test::copy_box<4>
                             : &test::copy_box<5>;
  return launch(g, o, "copy_box", kernel, map, at[0], at[1], at[2], at[3], at[4], bytes, out);
}
Status phases(G, unsigned* seen) { return launch(g, o, "phases", &test::phases, seen); }
}  // namespace launch_of
}  // namespace rooftile::emulated::test
