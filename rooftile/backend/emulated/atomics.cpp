// Atomics, fences, flags. An atomic that changes nothing may be a poll: after a few of them other threads
// run, or the thread that waits for a lock would keep from running the one that holds it.
#include <bit>
#include <type_traits>

#include "rooftile/backend/emulated/controls.h"
#include "rooftile/backend/emulated/device/memory.h"
#include "rooftile/backend/emulated/state.h"

namespace rooftile::emulated {
namespace {

void account(bool changed) {
  ClusterRunner& runner = *current->block->runner;
  if (changed) {
    ++runner.progress;
    if (++runner.polls % 1024 == 0) yield();
  } else if (++runner.polls % 8 == 0) {
    yield();
  }
}

template <class T>
void observe(T* at, bool reads, bool wrote, bool ordered, const void* pc) {
  if (observer) observer->atomic(*current, at, sizeof(T), reads, wrote, ordered, pc);
}

/// Replaces the value by change(value) and returns what it was. The hardware's atomics are relaxed; here they
/// are not.
template <class T, class Change>
[[gnu::always_inline]] inline T update(T* at, Change change) {
  using Bits = std::conditional_t<sizeof(T) == 8, std::uint64_t,
                                  std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint16_t>>;
  observe(at, true, true, false, __builtin_return_address(0));
  // Through a pointer that may alias: the kernel's memory holds T.
  typedef Bits __attribute__((may_alias)) Word;
  auto* word = reinterpret_cast<Word*>(at);
  Bits seen = __atomic_load_n(word, __ATOMIC_SEQ_CST), next;
  do next = std::bit_cast<Bits>(static_cast<T>(change(std::bit_cast<T>(seen))));
  while (!__atomic_compare_exchange_n(word, &seen, next, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST));
  account(seen != next);
  return std::bit_cast<T>(seen);
}
}  // namespace

namespace device {
void fence(bool) {
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
  if (observer) observer->fence(*current);
}
unsigned load_acquire(const unsigned* flag) {
  observe(flag, true, false, true, __builtin_return_address(0));
  const unsigned value = __atomic_load_n(flag, __ATOMIC_ACQUIRE);
  ClusterRunner& runner = *current->block->runner;
  if (++runner.polls % 8 == 0) yield();
  return value;
}
void store_release(unsigned* flag, unsigned value) {
  observe(flag, false, true, true, __builtin_return_address(0));
  __atomic_store_n(flag, value, __ATOMIC_RELEASE);
  ++current->block->runner->progress;
}
}  // namespace device
}  // namespace rooftile::emulated

using rooftile::emulated::update;

#define ROOFTILE_UPDATE(name, T, expression)                   \
  T name(T* at, T value) {                                     \
    return update(at, [=](T old) -> T { return expression; }); \
  }
ROOFTILE_UPDATE(atomicAdd, int, static_cast<int>(static_cast<unsigned>(old) + static_cast<unsigned>(value)))
ROOFTILE_UPDATE(atomicAdd, unsigned, old + value)
ROOFTILE_UPDATE(atomicAdd, unsigned long long, old + value)
ROOFTILE_UPDATE(atomicAdd, float, old + value)
ROOFTILE_UPDATE(atomicAdd, double, old + value)
ROOFTILE_UPDATE(atomicSub, int, static_cast<int>(static_cast<unsigned>(old) - static_cast<unsigned>(value)))
ROOFTILE_UPDATE(atomicSub, unsigned, old - value)
ROOFTILE_UPDATE(atomicInc, unsigned, old >= value ? 0 : old + 1)
ROOFTILE_UPDATE(atomicDec, unsigned, old == 0 || old > value ? value : old - 1)
ROOFTILE_UPDATE(atomicExch, float, (static_cast<void>(old), value))
#define ROOFTILE_UPDATES(T)                                                 \
  ROOFTILE_UPDATE(atomicMin, T, value < old ? value : old)                  \
  ROOFTILE_UPDATE(atomicMax, T, old < value ? value : old)                  \
  ROOFTILE_UPDATE(atomicAnd, T, old& value)                                 \
  ROOFTILE_UPDATE(atomicOr, T, old | value)                                 \
  ROOFTILE_UPDATE(atomicXor, T, old ^ value)                                \
  ROOFTILE_UPDATE(atomicExch, T, (static_cast<void>(old), value))           \
  T atomicCAS(T* at, T compare, T value) {                                  \
    return update(at, [=](T old) { return old == compare ? value : old; }); \
  }
ROOFTILE_UPDATES(int)
ROOFTILE_UPDATES(unsigned)
ROOFTILE_UPDATES(unsigned long long)
ROOFTILE_UPDATE(atomicMin, long long, value < old ? value : old)
ROOFTILE_UPDATE(atomicMax, long long, old < value ? value : old)
unsigned short atomicCAS(unsigned short* at, unsigned short compare, unsigned short value) {
  return update(at, [=](unsigned short old) { return old == compare ? value : old; });
}
