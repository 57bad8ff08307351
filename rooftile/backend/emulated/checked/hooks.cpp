// What -fsanitize=thread makes kernels call before each access, in place of ThreadSanitizer's runtime. Not
// instrumented itself.
#include <cstdint>
#include <cstring>

#include "rooftile/backend/emulated/checked/checker.h"

namespace rooftile::emulated {
namespace {
// The hook comes before the access. Where other threads run in between, they do so before the checker sees
// it: a value that they write meanwhile is read, and what they released with it is known.

/// Volatile accesses are relaxed atomics, as in PTX; one that reads may be a poll.
void access_volatile(const void* at, size_t bytes, bool writes, const void* pc) {
  if (!current || checker.busy()) return;
  const auto a = reinterpret_cast<std::uintptr_t>(at);
  if (a - reinterpret_cast<std::uintptr_t>(current->fiber->stack) < kStackBytes) return;
  ClusterRunner& runner = *current->block->runner;
  if (writes)
    ++runner.progress;
  else if (++runner.polls % 8 == 0)
    yield();
  checker.volatile_word(*current, at, static_cast<unsigned>(bytes), writes, pc);
}
void atomic(const volatile void* at, size_t bytes, bool reads, bool writes, int order, const void* pc) {
  if (!current || checker.busy()) return;
  ClusterRunner& runner = *current->block->runner;
  if (writes) ++runner.progress;
  if (++runner.polls % 8 == 0) yield();
  const bool ordered = order != __ATOMIC_RELAXED;
  checker.atomic(*current, const_cast<const void*>(at), static_cast<unsigned>(bytes), reads, writes, ordered,
                 pc);
}
}  // namespace
}  // namespace rooftile::emulated

using rooftile::emulated::AccessKind;
using rooftile::emulated::checker;
#define ROOFTILE_PC __builtin_return_address(0)

extern "C" {
void __tsan_init() {}
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}
void __tsan_vptr_update(void**, void*) {}
void __tsan_vptr_read(void**) {}
void __tsan_read_range(void* at, std::size_t bytes) {
  checker.access(at, bytes, AccessKind::kRead, ROOFTILE_PC);
}
void __tsan_write_range(void* at, std::size_t bytes) {
  checker.access(at, bytes, AccessKind::kWrite, ROOFTILE_PC);
}

#define ROOFTILE_HOOKS(n)                                                                                    \
  void __tsan_read##n(void* at) { checker.access(at, n, AccessKind::kRead, ROOFTILE_PC, true); }             \
  void __tsan_write##n(void* at) { checker.access(at, n, AccessKind::kWrite, ROOFTILE_PC, true); }           \
  void __tsan_unaligned_read##n(void* at) { checker.access(at, n, AccessKind::kRead, ROOFTILE_PC); }         \
  void __tsan_unaligned_write##n(void* at) { checker.access(at, n, AccessKind::kWrite, ROOFTILE_PC); }       \
  void __tsan_volatile_read##n(void* at) { rooftile::emulated::access_volatile(at, n, false, ROOFTILE_PC); } \
  void __tsan_volatile_write##n(void* at) { rooftile::emulated::access_volatile(at, n, true, ROOFTILE_PC); } \
  void __tsan_unaligned_volatile_read##n(void* at) {                                                         \
    rooftile::emulated::access_volatile(at, n, false, ROOFTILE_PC);                                          \
  }                                                                                                          \
  void __tsan_unaligned_volatile_write##n(void* at) {                                                        \
    rooftile::emulated::access_volatile(at, n, true, ROOFTILE_PC);                                           \
  }
ROOFTILE_HOOKS(1)
ROOFTILE_HOOKS(2)
ROOFTILE_HOOKS(4)
ROOFTILE_HOOKS(8)
ROOFTILE_HOOKS(16)

void* __tsan_memcpy(void* to, const void* from,
                    std::size_t bytes) {  // newer compilers; older: device/calls.h
  checker.access(from, bytes, AccessKind::kRead, ROOFTILE_PC);
  checker.access(to, bytes, AccessKind::kWrite, ROOFTILE_PC);
  return std::memcpy(to, from, bytes);
}
void* __tsan_memmove(void* to, const void* from, std::size_t bytes) {
  checker.access(from, bytes, AccessKind::kRead, ROOFTILE_PC);
  checker.access(to, bytes, AccessKind::kWrite, ROOFTILE_PC);
  return std::memmove(to, from, bytes);
}
void* __tsan_memset(void* to, int value, std::size_t bytes) {
  checker.access(to, bytes, AccessKind::kWrite, ROOFTILE_PC);
  return std::memset(to, value, bytes);
}

// The compiler's atomics (std::atomic, __atomic_…), for 8 to 64 bits.
#define ROOFTILE_OBSERVE(T, reads, writes) \
  rooftile::emulated::atomic(at, sizeof(T), reads, writes, order, ROOFTILE_PC)
#define ROOFTILE_FETCH(n, T, name)                                        \
  T __tsan_atomic##n##_fetch_##name(volatile T* at, T value, int order) { \
    ROOFTILE_OBSERVE(T, true, true);                                      \
    return __atomic_fetch_##name(at, value, __ATOMIC_SEQ_CST);            \
  }
#define ROOFTILE_ATOMICS(n, T)                                                                           \
  T __tsan_atomic##n##_load(const volatile T* at, int order) {                                           \
    ROOFTILE_OBSERVE(T, true, false);                                                                    \
    return __atomic_load_n(at, __ATOMIC_SEQ_CST);                                                        \
  }                                                                                                      \
  void __tsan_atomic##n##_store(volatile T* at, T value, int order) {                                    \
    ROOFTILE_OBSERVE(T, false, true);                                                                    \
    __atomic_store_n(at, value, __ATOMIC_SEQ_CST);                                                       \
  }                                                                                                      \
  T __tsan_atomic##n##_exchange(volatile T* at, T value, int order) {                                    \
    ROOFTILE_OBSERVE(T, true, true);                                                                     \
    return __atomic_exchange_n(at, value, __ATOMIC_SEQ_CST);                                             \
  }                                                                                                      \
  int __tsan_atomic##n##_compare_exchange_strong(volatile T* at, T* expected, T value, int order, int) { \
    ROOFTILE_OBSERVE(T, true, true);                                                                     \
    return __atomic_compare_exchange_n(at, expected, value, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);  \
  }                                                                                                      \
  int __tsan_atomic##n##_compare_exchange_weak(volatile T* at, T* expected, T value, int order, int) {   \
    ROOFTILE_OBSERVE(T, true, true);                                                                     \
    return __atomic_compare_exchange_n(at, expected, value, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);  \
  }                                                                                                      \
  T __tsan_atomic##n##_compare_exchange_val(volatile T* at, T expected, T value, int order, int) {       \
    ROOFTILE_OBSERVE(T, true, true);                                                                     \
    __atomic_compare_exchange_n(at, &expected, value, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);        \
    return expected;                                                                                     \
  }                                                                                                      \
  ROOFTILE_FETCH(n, T, add)                                                                              \
  ROOFTILE_FETCH(n, T, sub)                                                                              \
  ROOFTILE_FETCH(n, T, and)                                                                              \
  ROOFTILE_FETCH(n, T, or)                                                                               \
  ROOFTILE_FETCH(n, T, xor)                                                                              \
  ROOFTILE_FETCH(n, T, nand)
ROOFTILE_ATOMICS(8, std::uint8_t)
ROOFTILE_ATOMICS(16, std::uint16_t)
ROOFTILE_ATOMICS(32, std::uint32_t)
ROOFTILE_ATOMICS(64, std::uint64_t)
void __tsan_atomic_thread_fence(int) {
  if (rooftile::emulated::current) checker.fence(*rooftile::emulated::current);
}
void __tsan_atomic_signal_fence(int) {}
}
