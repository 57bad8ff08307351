#pragma once
// Copies of boxes of a tensor by the copy engine (TMA; sm_90 on), each asked for by one thread. `at`: the
// coordinates of the box's first element, innermost first, also negative or beyond the end: {x, y}.
#include <cstddef>
#include <cstdint>

#include "rooftile/backend/cuda/ptx.h"
#include "rooftile/backend/cuda/tensor_map.h"
#if defined(ROOFTILE_EMULATED)
#include "rooftile/backend/emulated/device/hopper_calls.h"
#endif

#if defined(ROOFTILE_HAS_SM90)
namespace rooftile::cuda {

/// So that the first copy need not wait for the map.
ROOFTILE_PTX void prefetch_tensor_map([[maybe_unused]] const TensorMap* map) {
#if !defined(ROOFTILE_EMULATED)
  asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory");
#endif
}

/// How long the L2 should keep what is loaded.
enum class Keep : std::uint64_t {
  kNormal = 0x1000000000000000,
  kShort = 0x12F0000000000000,  // is the first to go
  kLong = 0x14F0000000000000    // is the last to go
};

#if !defined(ROOFTILE_EMULATED)
namespace detail {
#define ROOFTILE_TENSOR_LOAD(n, coordinates, ...)                                                     \
  asm volatile(                                                                                       \
      "cp.async.bulk.tensor." #n                                                                      \
      "d.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [%0], [%1, {" coordinates \
      "}], [%2], %3;" ::"r"(shared_address(to)),                                                      \
      "l"(map), "r"(shared_address(barrier)), "l"(static_cast<std::uint64_t>(keep)), __VA_ARGS__      \
      : "memory")
#define ROOFTILE_TENSOR_LOAD_TO_ALL(n, coordinates, ...)                                                   \
  asm volatile("cp.async.bulk.tensor." #n                                                                  \
               "d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster.L2::cache_hint "  \
               "[%0], [%1, {" coordinates "}], [%2], %3, %4;" ::"r"(shared_address(to)),                   \
               "l"(map), "r"(shared_address(barrier)), "h"(blocks), "l"(static_cast<std::uint64_t>(keep)), \
               __VA_ARGS__                                                                                 \
               : "memory")
#define ROOFTILE_TENSOR_STORE(n, coordinates, ...)                                             \
  asm volatile("cp.async.bulk.tensor." #n "d.global.shared::cta.bulk_group [%0, {" coordinates \
               "}], [%1];" ::"l"(map),                                                         \
               "r"(shared_address(from)), __VA_ARGS__                                          \
               : "memory")
}  // namespace detail
#endif

/// The box to `to` (swizzled as the map says; a multiple of 128 bytes), arriving at `barrier` as all its
/// bytes, also those outside of the tensor.
template <int N>
ROOFTILE_PTX void tensor_load(void* to, const TensorMap* map, std::uint64_t* barrier, const int (&at)[N],
                              [[maybe_unused]] Keep keep = Keep::kNormal ROOFTILE_PTX_HERE) {
  static_assert(N >= 1 && N <= 5);
#if defined(ROOFTILE_EMULATED)
  emulated::device::tensor_load(to, map, at, N, barrier, 0, where);
#else
  using detail::shared_address;
  if constexpr (N == 1)
    ROOFTILE_TENSOR_LOAD(1, "%4", "r"(at[0]));
  else if constexpr (N == 2)
    ROOFTILE_TENSOR_LOAD(2, "%4, %5", "r"(at[0]), "r"(at[1]));
  else if constexpr (N == 3)
    ROOFTILE_TENSOR_LOAD(3, "%4, %5, %6", "r"(at[0]), "r"(at[1]), "r"(at[2]));
  else if constexpr (N == 4)
    ROOFTILE_TENSOR_LOAD(4, "%4, %5, %6, %7", "r"(at[0]), "r"(at[1]), "r"(at[2]), "r"(at[3]));
  else
    ROOFTILE_TENSOR_LOAD(5, "%4, %5, %6, %7, %8", "r"(at[0]), "r"(at[1]), "r"(at[2]), "r"(at[3]), "r"(at[4]));
#endif
}
/// The same box to the same place of every block of the cluster whose rank's bit is set in `blocks`, arriving
/// at its barrier in the same place.
template <int N>
ROOFTILE_PTX void tensor_load_to_all(void* to, const TensorMap* map, std::uint64_t* barrier,
                                     const int (&at)[N], std::uint16_t blocks,
                                     [[maybe_unused]] Keep keep = Keep::kNormal ROOFTILE_PTX_HERE) {
  static_assert(N >= 2 && N <= 4);
#if defined(ROOFTILE_EMULATED)
  emulated::device::tensor_load(to, map, at, N, barrier, blocks | emulated::device::kToAll, where);
#else
  using detail::shared_address;
  if constexpr (N == 2)
    ROOFTILE_TENSOR_LOAD_TO_ALL(2, "%5, %6", "r"(at[0]), "r"(at[1]));
  else if constexpr (N == 3)
    ROOFTILE_TENSOR_LOAD_TO_ALL(3, "%5, %6, %7", "r"(at[0]), "r"(at[1]), "r"(at[2]));
  else
    ROOFTILE_TENSOR_LOAD_TO_ALL(4, "%5, %6, %7, %8", "r"(at[0]), "r"(at[1]), "r"(at[2]), "r"(at[3]));
#endif
}
/// A box to the tensor. Threads that wrote it have said fence_proxy_async, and a barrier stands between them
/// and this one.
template <int N>
ROOFTILE_PTX void tensor_store(const TensorMap* map, const int (&at)[N], const void* from ROOFTILE_PTX_HERE) {
  static_assert(N >= 2 && N <= 4);
#if defined(ROOFTILE_EMULATED)
  emulated::device::tensor_store(map, at, N, from, where);
#else
  using detail::shared_address;
  if constexpr (N == 2)
    ROOFTILE_TENSOR_STORE(2, "%2, %3", "r"(at[0]), "r"(at[1]));
  else if constexpr (N == 3)
    ROOFTILE_TENSOR_STORE(3, "%2, %3, %4", "r"(at[0]), "r"(at[1]), "r"(at[2]));
  else
    ROOFTILE_TENSOR_STORE(4, "%2, %3, %4, %5", "r"(at[0]), "r"(at[1]), "r"(at[2]), "r"(at[3]));
#endif
}
#if !defined(ROOFTILE_EMULATED)
#undef ROOFTILE_TENSOR_LOAD
#undef ROOFTILE_TENSOR_LOAD_TO_ALL
#undef ROOFTILE_TENSOR_STORE
#endif
/// Closes a group: this thread's stores since the last one.
ROOFTILE_PTX void tensor_store_commit(ROOFTILE_PTX_HERE_ONLY) {
#if defined(ROOFTILE_EMULATED)
  emulated::device::bulk_commit(where);
#else
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
#endif
}
/// Waits until this thread's groups but the last `N` have read shared memory, which then may be written
/// again; also before the thread ends.
template <int N>
ROOFTILE_PTX void tensor_store_wait_read(ROOFTILE_PTX_HERE_ONLY) {
#if defined(ROOFTILE_EMULATED)
  emulated::device::bulk_wait(N, where);
#else
  asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(N) : "memory");
#endif
}
/// The same until they are written, and seen by this thread.
template <int N>
ROOFTILE_PTX void tensor_store_wait(ROOFTILE_PTX_HERE_ONLY) {
#if defined(ROOFTILE_EMULATED)
  emulated::device::bulk_wait(N, where);
#else
  asm volatile("cp.async.bulk.wait_group %0;" ::"n"(N) : "memory");
#endif
}

}  // namespace rooftile::cuda
#endif  // ROOFTILE_HAS_SM90
