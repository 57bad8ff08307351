#pragma once
// PTX, here and in matrices.h: instructions that CUDA C++ has no name for, each with a twin for the emulated
// device. A copy made here is there for the thread that waited for it: others need a barrier after it.
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "rooftile/backend/cuda/matrices.h"

namespace rooftile::cuda {
// --- arithmetic
// ---------------------------------------------------------------

/// 2^x by the special function unit: relative error below 2^-22, subnormal results too.
ROOFTILE_PTX float exp2_approx(float x) {
#if defined(ROOFTILE_EMULATED)
  return __builtin_exp2f(x);
#else
  float y;
  asm("ex2.approx.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
#endif
}
/// The same in one instruction instead of four; 0 where the result would be subnormal.
ROOFTILE_PTX float exp2_approx_normal(float x) {
#if defined(ROOFTILE_EMULATED)
  const float y = __builtin_exp2f(x);
  return y < 0x1p-126f ? 0.0f : y;
#else
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
#endif
}
/// 1/x, off by at most one ulp, for 2^-126 ≤ |x| ≤ 2^126.
ROOFTILE_PTX float reciprocal_approx(float x) {
#if defined(ROOFTILE_EMULATED)
  return 1 / x;
#else
  float y;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
#endif
}
#if defined(ROOFTILE_EMULATED)
namespace detail {
/// As the hardware has it: of a number and a NaN the number, and -0 below +0.
ROOFTILE_PTX unsigned larger_half(unsigned a, unsigned b, unsigned infinity) {
  if ((a & 0x7fff) > infinity) return b;
  if ((b & 0x7fff) > infinity) return a;
  const auto order = [](unsigned x) { return x & 0x8000 ? 0xffff - x : x + 0x8000; };
  return order(a) < order(b) ? b : a;
}
}  // namespace detail
#endif
/// The larger or smaller ones of two pairs; of a NaN and a number the number.
#if defined(ROOFTILE_EMULATED)
#define ROOFTILE_PAIRS(name, instruction, infinity, flip)            \
  ROOFTILE_PTX unsigned name(unsigned a, unsigned b) {               \
    a ^= flip, b ^= flip;                                            \
    return (detail::larger_half(a >> 16, b >> 16, infinity) << 16 |  \
            detail::larger_half(a & 0xffff, b & 0xffff, infinity)) ^ \
           flip;                                                     \
  }
#else
#define ROOFTILE_PAIRS(name, instruction, infinity, flip)            \
  ROOFTILE_PTX unsigned name(unsigned a, unsigned b) {               \
    unsigned result;                                                 \
    asm(instruction " %0, %1, %2;" : "=r"(result) : "r"(a), "r"(b)); \
    return result;                                                   \
  }
#endif
ROOFTILE_PAIRS(max_bf16x2, "max.bf16x2", 0x7f80, 0u)
ROOFTILE_PAIRS(min_bf16x2, "min.bf16x2", 0x7f80, 0x80008000u)
ROOFTILE_PAIRS(max_f16x2, "max.f16x2", 0x7c00, 0u)
ROOFTILE_PAIRS(min_f16x2, "min.f16x2", 0x7c00, 0x80008000u)
#undef ROOFTILE_PAIRS

// --- copies into shared memory by a thread (sm_80 on)
// ---------------------------------------------------------------

/// 16 bytes, both addresses aligned to 16: `bytes_to_copy` (0 to 16) from memory, then zeros.
ROOFTILE_PTX void cp_async_16(void* to_shared, const void* from_global, int bytes_to_copy = 16) {
#if defined(ROOFTILE_EMULATED)
  emulated::device::async_copy(to_shared, from_global, static_cast<unsigned>(bytes_to_copy),
                               16 - static_cast<unsigned>(bytes_to_copy));
#else
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(detail::shared_address(to_shared)),
               "l"(from_global), "r"(bytes_to_copy)
               : "memory");
#endif
}
/// The same, all 16, by way of the first cache: what neighbouring blocks copied may be there.
ROOFTILE_PTX void cp_async_16_cached(void* to_shared, const void* from_global) {
#if defined(ROOFTILE_EMULATED)
  emulated::device::async_copy(to_shared, from_global, 16, 0);
#else
  asm volatile("cp.async.ca.shared.global [%0], [%1], 16;" ::"r"(detail::shared_address(to_shared)),
               "l"(from_global)
               : "memory");
#endif
}
/// The same, `bytes_to_copy` (0 to 16), then zeros.
ROOFTILE_PTX void cp_async_16_cached(void* to_shared, const void* from_global, int bytes_to_copy) {
#if defined(ROOFTILE_EMULATED)
  cp_async_16(to_shared, from_global, bytes_to_copy);
#else
  asm volatile("cp.async.ca.shared.global [%0], [%1], 16, %2;" ::"r"(detail::shared_address(to_shared)),
               "l"(from_global), "r"(bytes_to_copy)
               : "memory");
#endif
}
/// `kBytes` (4 or 8), both addresses aligned to as much: `bytes_to_copy` from memory, then zeros.
template <int kBytes>
ROOFTILE_PTX void cp_async(void* to_shared, const void* from_global, int bytes_to_copy = kBytes) {
  static_assert(kBytes == 4 || kBytes == 8);
#if defined(ROOFTILE_EMULATED)
  emulated::device::async_copy(to_shared, from_global, static_cast<unsigned>(bytes_to_copy),
                               kBytes - static_cast<unsigned>(bytes_to_copy));
#else
  asm volatile("cp.async.ca.shared.global [%0], [%1], %3, %2;" ::"r"(detail::shared_address(to_shared)),
               "l"(from_global), "r"(bytes_to_copy), "n"(kBytes)
               : "memory");
#endif
}
/// Closes a group: the copies since the last one.
ROOFTILE_PTX void cp_async_commit() {
#if defined(ROOFTILE_EMULATED)
  emulated::device::async_commit();
#else
  asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}
/// Waits for this thread's groups but the last `N`.
template <int N>
ROOFTILE_PTX void cp_async_wait() {
#if defined(ROOFTILE_EMULATED)
  emulated::device::async_wait(N);
#else
  asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory");
#endif
}

// --- barriers of a part of the block
// --------------------------------------------------------------------------------

/// Waits until `threads` threads (a multiple of 32) are at barrier `id` (1 to 15; 0 is __syncthreads).
ROOFTILE_PTX void named_barrier_sync(int id, int threads ROOFTILE_PTX_HERE) {
#if defined(ROOFTILE_EMULATED)
  emulated::device::named_barrier(static_cast<unsigned>(id), static_cast<unsigned>(threads), true, false,
                                  where);
#else
  asm volatile("barrier.sync %0, %1;" ::"r"(id), "r"(threads) : "memory");
#endif
}
/// The same; whether the predicate of any of them held.
ROOFTILE_PTX bool named_barrier_or(int id, int threads, bool predicate ROOFTILE_PTX_HERE) {
#if defined(ROOFTILE_EMULATED)
  return emulated::device::named_barrier(static_cast<unsigned>(id), static_cast<unsigned>(threads), true,
                                         predicate, where);
#else
  unsigned any;
  asm volatile(
      "{\n.reg .pred p, q;\nsetp.ne.u32 p, %3, 0;\nbarrier.red.or.pred q, %1, %2, p;\n"
      "selp.u32 %0, 1, 0, q;\n}"
      : "=r"(any)
      : "r"(id), "r"(threads), "r"(static_cast<unsigned>(predicate))
      : "memory");
  return any != 0;
#endif
}
/// Counts as one of them and goes on.
ROOFTILE_PTX void named_barrier_arrive(int id, int threads ROOFTILE_PTX_HERE) {
#if defined(ROOFTILE_EMULATED)
  emulated::device::named_barrier(static_cast<unsigned>(id), static_cast<unsigned>(threads), false, false,
                                  where);
#else
  asm volatile("barrier.arrive %0, %1;" ::"r"(id), "r"(threads) : "memory");
#endif
}

// --- flags between blocks
// -------------------------------------------------------------------------------------------

/// For loops that wait for a flag: what was written before the store_release that set it is seen after.
ROOFTILE_PTX unsigned load_acquire(const unsigned* flag) {
#if defined(ROOFTILE_EMULATED)
  return emulated::device::load_acquire(flag);
#else
  unsigned value;
  asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(value) : "l"(flag) : "memory");
  return value;
#endif
}
ROOFTILE_PTX void store_release(unsigned* flag, unsigned value) {
#if defined(ROOFTILE_EMULATED)
  emulated::device::store_release(flag, value);
#else
  asm volatile("st.release.gpu.global.u32 [%0], %1;" ::"l"(flag), "r"(value) : "memory");
#endif
}

#if defined(ROOFTILE_HAS_SM90)
// --- clusters (sm_90 on)
// --------------------------------------------------------------------------------------------

ROOFTILE_PTX unsigned cluster_rank() {
#if defined(ROOFTILE_EMULATED)
  return emulated::device::cluster_rank();
#else
  unsigned rank;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
#endif
}
ROOFTILE_PTX unsigned cluster_size() {
#if defined(ROOFTILE_EMULATED)
  return emulated::device::cluster_size();
#else
  unsigned size;
  asm volatile("mov.u32 %0, %%cluster_nctarank;" : "=r"(size));
  return size;
#endif
}
ROOFTILE_PTX void cluster_arrive(ROOFTILE_PTX_HERE_ONLY) {
#if defined(ROOFTILE_EMULATED)
  emulated::device::cluster_arrive(where);
#else
  asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
#endif
}
/// The same without waiting for this thread's writes, which others then may not see.
ROOFTILE_PTX void cluster_arrive_relaxed(ROOFTILE_PTX_HERE_ONLY) {
#if defined(ROOFTILE_EMULATED)
  emulated::device::cluster_arrive(where);
#else
  asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
#endif
}
ROOFTILE_PTX void cluster_wait(ROOFTILE_PTX_HERE_ONLY) {
#if defined(ROOFTILE_EMULATED)
  emulated::device::cluster_wait(where);
#else
  asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
#endif
}
/// All threads of all blocks of the cluster; also before a block ends whose shared memory another may still
/// read.
ROOFTILE_PTX void cluster_sync(ROOFTILE_PTX_HERE_ONLY) {
#if defined(ROOFTILE_EMULATED)
  emulated::device::cluster_arrive(where);
  emulated::device::cluster_wait(where);
#else
  cluster_arrive();
  cluster_wait();
#endif
}
/// The same place in the shared memory of block `rank` of the cluster, as a generic address.
template <class T>
ROOFTILE_PTX T* map_shared_rank(T* pointer, unsigned rank ROOFTILE_PTX_HERE) {
#if defined(ROOFTILE_EMULATED)
  return static_cast<T*>(emulated::device::map_shared_rank(pointer, rank, where));
#else
  T* mapped;
  asm volatile("mapa.u64 %0, %1, %2;" : "=l"(mapped) : "l"(pointer), "r"(rank));
  return mapped;
#endif
}

// --- barriers in shared memory (mbarrier), and copies that arrive at them (sm_90 on)
// --------------------------------

/// By one thread, then fence_mbarrier_init and __syncthreads (or cluster_sync).
ROOFTILE_PTX void mbarrier_init(std::uint64_t* barrier, unsigned arrivals ROOFTILE_PTX_HERE) {
#if defined(ROOFTILE_EMULATED)
  emulated::device::mbarrier_init(barrier, arrivals, where);
#else
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(detail::shared_address(barrier)), "r"(arrivals)
               : "memory");
#endif
}
ROOFTILE_PTX void fence_mbarrier_init() {
#if defined(ROOFTILE_EMULATED)
  emulated::device::mbarrier_init_fence();
#else
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
#endif
}
/// Between reads or writes by threads and a bulk copy or a wgmma of the same place.
ROOFTILE_PTX void fence_proxy_async() {
#if defined(ROOFTILE_EMULATED)
  emulated::device::proxy_fence();
#else
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
#endif
}
ROOFTILE_PTX void mbarrier_arrive(std::uint64_t* barrier ROOFTILE_PTX_HERE) {
#if defined(ROOFTILE_EMULATED)
  emulated::device::mbarrier_arrive(barrier, 0, true, where);
#else
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(detail::shared_address(barrier)) : "memory");
#endif
}
/// Arrives once all cp.async of this thread so far are done, which it does not wait for.
ROOFTILE_PTX void mbarrier_arrive_after_copies(std::uint64_t* barrier ROOFTILE_PTX_HERE) {
#if defined(ROOFTILE_EMULATED)
  emulated::device::async_commit();
  emulated::device::async_wait(0);
  emulated::device::mbarrier_arrive(barrier, 0, true, where);
#else
  asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(detail::shared_address(barrier))
               : "memory");
#endif
}
/// Arrives at the barrier in the same place of block `rank` of the cluster.
ROOFTILE_PTX void mbarrier_arrive_at(std::uint64_t* barrier, unsigned rank ROOFTILE_PTX_HERE) {
#if defined(ROOFTILE_EMULATED)
  emulated::device::mbarrier_arrive(map_shared_rank(barrier, rank, where), 0, true, where);
#else
  std::uint32_t remote;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;"
               : "=r"(remote)
               : "r"(detail::shared_address(barrier)), "r"(rank));
  asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" ::"r"(remote) : "memory");
#endif
}
/// The same where nothing that this thread wrote need be seen: of a slot that was only read. (With the order,
/// one in each step of a product's main loop took a fifth of its speed on an H200.)
ROOFTILE_PTX void mbarrier_arrive_at_relaxed(std::uint64_t* barrier, unsigned rank ROOFTILE_PTX_HERE) {
#if defined(ROOFTILE_EMULATED)
  emulated::device::mbarrier_arrive(map_shared_rank(barrier, rank, where), 0, true, where);
#else
  std::uint32_t remote;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;"
               : "=r"(remote)
               : "r"(detail::shared_address(barrier)), "r"(rank));
  asm volatile("mbarrier.arrive.relaxed.cluster.shared::cluster.b64 _, [%0];" ::"r"(remote) : "memory");
#endif
}
/// Arrives, and makes the phase wait for `bytes` more of bulk copies.
ROOFTILE_PTX void mbarrier_arrive_expect_tx(std::uint64_t* barrier, unsigned bytes ROOFTILE_PTX_HERE) {
#if defined(ROOFTILE_EMULATED)
  emulated::device::mbarrier_arrive(barrier, bytes, true, where);
#else
  asm volatile(
      "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(detail::shared_address(barrier)),
      "r"(bytes)
      : "memory");
#endif
}
/// The same without arriving.
ROOFTILE_PTX void mbarrier_expect_tx(std::uint64_t* barrier, unsigned bytes ROOFTILE_PTX_HERE) {
#if defined(ROOFTILE_EMULATED)
  emulated::device::mbarrier_arrive(barrier, bytes, false, where);
#else
  asm volatile(
      "mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], %1;" ::"r"(detail::shared_address(barrier)),
      "r"(bytes)
      : "memory");
#endif
}
/// Whether the phase of this parity (0 for the first, then 1, 0, …) is over; may wait a while for it.
ROOFTILE_PTX bool mbarrier_try_wait(std::uint64_t* barrier, unsigned parity ROOFTILE_PTX_HERE) {
#if defined(ROOFTILE_EMULATED)
  return emulated::device::mbarrier_wait(barrier, parity, where);
#else
  std::uint32_t done;
  asm volatile(
      "{\n.reg .pred p;\n"
      "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
      "selp.u32 %0, 1, 0, p;\n}"
      : "=r"(done)
      : "r"(detail::shared_address(barrier)), "r"(parity)
      : "memory");
  return done != 0;
#endif
}
ROOFTILE_PTX void mbarrier_wait(std::uint64_t* barrier, unsigned parity ROOFTILE_PTX_HERE) {
#if defined(ROOFTILE_EMULATED)
  while (!mbarrier_try_wait(barrier, parity, where)) {
  }
#else
  while (!mbarrier_try_wait(barrier, parity)) {
  }
#endif
}
/// Four bytes into the same place of block `rank` of the cluster, arriving at its barrier as that many bytes.
template <class T>
ROOFTILE_PTX void store_async_at(T* to, T value, std::uint64_t* barrier, unsigned rank ROOFTILE_PTX_HERE) {
  static_assert(sizeof(T) == 4);
#if defined(ROOFTILE_EMULATED)
  *map_shared_rank(to, rank, where) = value;
  emulated::device::mbarrier_complete(map_shared_rank(barrier, rank, where), sizeof value, where);
#else
  std::uint32_t bits, remote, remote_barrier;
  memcpy(&bits, &value, sizeof value);
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;"
               : "=r"(remote)
               : "r"(detail::shared_address(to)), "r"(rank));
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;"
               : "=r"(remote_barrier)
               : "r"(detail::shared_address(barrier)), "r"(rank));
  asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%0], %1, [%2];" ::"r"(remote),
               "r"(bits), "r"(remote_barrier)
               : "memory");
#endif
}
/// By one thread: `bytes` (a multiple of 16, both addresses aligned to 16), arriving at `barrier` as that
/// many bytes.
ROOFTILE_PTX void bulk_copy_global_to_shared(void* to_shared, const void* from_global, unsigned bytes,
                                             std::uint64_t* barrier ROOFTILE_PTX_HERE) {
#if defined(ROOFTILE_EMULATED)
  emulated::device::bulk_copy(to_shared, from_global, bytes, barrier, where);
#else
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
          detail::shared_address(to_shared)),
      "l"(from_global), "r"(bytes), "r"(detail::shared_address(barrier))
      : "memory");
#endif
}

// --- kernels that follow one upon the other
// --------------------------------------------------------------------------------

/// Lets the kernel that is launched next, if with Grid::early, start as soon as all blocks of this one are
/// here.
ROOFTILE_PTX void let_next_start() {
#if !defined(ROOFTILE_EMULATED)  // where one kernel is done before the next begins
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}
/// Of such a kernel: waits until the one before is done, and all that it wrote is there.
ROOFTILE_PTX void wait_for_previous() {
#if !defined(ROOFTILE_EMULATED)
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

#endif  // ROOFTILE_HAS_SM90

}  // namespace rooftile::cuda
