#pragma once
// Who a thread is, and what it waits for: barriers, shuffles, votes.

#include <cstring>
#include <type_traits>

#include "rooftile/backend/emulated/device/calls.h"
#include "rooftile/backend/emulated/device/vectors.h"

// Real variables, so that a debugger prints them. Constant, as a thread sees them: the engine sets them when
// it switches. The model saves a call for each use: they live in a library that is loaded late, but take only
// 48 bytes.
#define ROOFTILE_INDEX extern const __thread __attribute__((tls_model("initial-exec")))
ROOFTILE_INDEX uint3 threadIdx;
ROOFTILE_INDEX uint3 blockIdx;
ROOFTILE_INDEX uint3 blockDim;
ROOFTILE_INDEX uint3 gridDim;
#undef ROOFTILE_INDEX
constexpr int warpSize = 32;

namespace rooftile::emulated::device {
using WarpOp = WarpOperation;

template <class T>
inline std::uint64_t to_bits(T value) {
  static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= 8,
                "rooftile: a shuffle moves trivially copyable values of 1 to 8 bytes");
  std::uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof value);
  return bits;
}
template <class T>
inline T from_bits(std::uint64_t bits) {
  T value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}
template <class T>
inline T shuffle(WarpOp kind, unsigned mask, T value, unsigned source, Site where) {
  return from_bits<T>(warp_operation(kind, mask, to_bits(value), source, where));
}
}  // namespace rooftile::emulated::device

#define ROOFTILE_HERE ::rooftile::emulated::Site where = ::rooftile::emulated::here()
#define ROOFTILE_CALL __attribute__((always_inline)) inline

ROOFTILE_CALL void __syncthreads(ROOFTILE_HERE) { ::rooftile::emulated::device::block_barrier(false, where); }
ROOFTILE_CALL int __syncthreads_count(int predicate, ROOFTILE_HERE) {
  return static_cast<int>(::rooftile::emulated::device::block_barrier(predicate != 0, where).count);
}
ROOFTILE_CALL int __syncthreads_and(int predicate, ROOFTILE_HERE) {
  return ::rooftile::emulated::device::block_barrier(predicate != 0, where).all;
}
ROOFTILE_CALL int __syncthreads_or(int predicate, ROOFTILE_HERE) {
  return ::rooftile::emulated::device::block_barrier(predicate != 0, where).any;
}
ROOFTILE_CALL void __syncwarp(unsigned mask = 0xffffffffu, ROOFTILE_HERE) {
  ::rooftile::emulated::device::warp_operation(::rooftile::emulated::device::WarpOp::kSync, mask, 0, 0,
                                               where);
}

template <class T>
ROOFTILE_CALL T __shfl_sync(unsigned mask, T value, int source, int width = 32, ROOFTILE_HERE) {
  const unsigned lane = ::rooftile::emulated::device::lane(), w = static_cast<unsigned>(width);
  const unsigned from = (lane & ~(w - 1)) | (static_cast<unsigned>(source) & (w - 1));
  using ::rooftile::emulated::device::WarpOp;
  return ::rooftile::emulated::device::shuffle(WarpOp::kShuffle, mask, value, from, where);
}
template <class T>
ROOFTILE_CALL T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = 32, ROOFTILE_HERE) {
  const unsigned lane = ::rooftile::emulated::device::lane(),
                 first = lane & ~(static_cast<unsigned>(width) - 1);
  using ::rooftile::emulated::device::WarpOp;
  return ::rooftile::emulated::device::shuffle(WarpOp::kShuffleUp, mask, value,
                                               lane - first < delta ? lane : lane - delta, where);
}
template <class T>
ROOFTILE_CALL T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = 32, ROOFTILE_HERE) {
  const unsigned lane = ::rooftile::emulated::device::lane(),
                 last = lane | (static_cast<unsigned>(width) - 1);
  using ::rooftile::emulated::device::WarpOp;
  return ::rooftile::emulated::device::shuffle(WarpOp::kShuffleDown, mask, value,
                                               last - lane < delta ? lane : lane + delta, where);
}
template <class T>
ROOFTILE_CALL T __shfl_xor_sync(unsigned mask, T value, int lanes, int width = 32, ROOFTILE_HERE) {
  const unsigned lane = ::rooftile::emulated::device::lane(), from = lane ^ static_cast<unsigned>(lanes);
  // As the hardware: a lane of an earlier segment may be read, one of a later segment may not.
  const unsigned last = lane | (static_cast<unsigned>(width) - 1);
  using ::rooftile::emulated::device::WarpOp;
  return ::rooftile::emulated::device::shuffle(WarpOp::kShuffleXor, mask, value, from > last ? lane : from,
                                               where);
}

ROOFTILE_CALL unsigned __ballot_sync(unsigned mask, int predicate, ROOFTILE_HERE) {
  return static_cast<unsigned>(::rooftile::emulated::device::warp_operation(
      ::rooftile::emulated::device::WarpOp::kBallot, mask, predicate != 0, 0, where));
}
ROOFTILE_CALL int __any_sync(unsigned mask, int predicate, ROOFTILE_HERE) {
  return __ballot_sync(mask, predicate, where) != 0;
}
ROOFTILE_CALL int __all_sync(unsigned mask, int predicate, ROOFTILE_HERE) {
  return __ballot_sync(mask, !predicate, where) == 0;
}
/// Only this lane: CUDA promises no more than that the caller is among them, and code that needs more is
/// wrong.
ROOFTILE_CALL unsigned __activemask() { return 1u << ::rooftile::emulated::device::lane(); }
template <class T>
ROOFTILE_CALL unsigned __match_any_sync(unsigned mask, T value, ROOFTILE_HERE) {
  return static_cast<unsigned>(
      ::rooftile::emulated::device::warp_operation(::rooftile::emulated::device::WarpOp::kMatch, mask,
                                                   ::rooftile::emulated::device::to_bits(value), 0, where));
}

#define ROOFTILE_REDUCE(name, type, operation)                                                            \
  ROOFTILE_CALL type name(unsigned mask, type value, ROOFTILE_HERE) {                                     \
    return static_cast<type>(static_cast<unsigned>(::rooftile::emulated::device::warp_operation(          \
        ::rooftile::emulated::device::WarpOp::operation, mask, static_cast<unsigned>(value), 0, where))); \
  }
ROOFTILE_REDUCE(__reduce_add_sync, unsigned, kAdd)
ROOFTILE_REDUCE(__reduce_min_sync, unsigned, kMin)
ROOFTILE_REDUCE(__reduce_max_sync, unsigned, kMax)
ROOFTILE_REDUCE(__reduce_add_sync, int, kAdd)
ROOFTILE_REDUCE(__reduce_min_sync, int, kMinSigned)
ROOFTILE_REDUCE(__reduce_max_sync, int, kMaxSigned)
ROOFTILE_REDUCE(__reduce_and_sync, unsigned, kAnd)
ROOFTILE_REDUCE(__reduce_or_sync, unsigned, kOr)
ROOFTILE_REDUCE(__reduce_xor_sync, unsigned, kXor)
#undef ROOFTILE_REDUCE

ROOFTILE_CALL void __nanosleep(unsigned) { ::rooftile::emulated::device::pause(); }
[[noreturn]] ROOFTILE_CALL void __trap(ROOFTILE_HERE) { ::rooftile::emulated::device::trap(where); }
ROOFTILE_CALL long long clock64() { return static_cast<long long>(::rooftile::emulated::device::clock()); }
