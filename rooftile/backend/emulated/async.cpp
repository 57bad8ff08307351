// Asynchronous copies. The hardware may make them at any time until they are waited for; here that is the
// latest moment, and until then their destination is NaN: a missing wait shows at every run.
#include <algorithm>
#include <cstring>

#include "rooftile/backend/emulated/controls.h"
#include "rooftile/backend/emulated/state.h"

namespace rooftile::emulated {
namespace {

void issue(Thread& me, const AsyncCopy& copy) {
  if (observer) observer->async_issued(me, copy);
  std::memset(copy.to, 0xff, copy.bytes + copy.zeros);
}
void make(Thread& me, const AsyncCopy& copy) {
  if (observer) observer->async_done(me, copy);
  std::memmove(copy.to, copy.from, copy.bytes);  // not memcpy, which the checked build takes for a kernel's
  if (copy.zeros != 0) std::memset(copy.to + copy.bytes, 0, copy.zeros);
}

bool in_shared(const Block& block, const void* at, std::size_t bytes) {
  const auto* p = static_cast<const std::byte*>(at);
  for (const Block& b : block.runner->blocks)
    if (p >= b.arena && p + bytes <= b.arena + b.arena_used) return true;
  return false;
}
[[noreturn]] void refuse(Site where, const char* what, const void* to, const void* from, unsigned bytes) {
  fail(static_cast<int>(FindingKind::kOutOfBounds), where,
       "%s of %u bytes from %p to %p (%s:%u): to shared memory, sizes and addresses multiples of 16 (a "
       "cp.async: of 4, 8 or 16)",
       what, bytes, from, to, where.file ? where.file : "?", where.line);
}
bool aligned(const void* p, unsigned to = 16) { return reinterpret_cast<std::uintptr_t>(p) % to == 0; }

Mbarrier* find(ClusterRunner& runner, const std::uint64_t* address) {
  for (Mbarrier& b : runner.mbarriers)
    if (b.address == address) return &b;
  return nullptr;
}
Mbarrier& get(std::uint64_t* address, Site where) {
  Mbarrier* b = find(*current->block->runner, address);
  if (!b)
    fail(static_cast<int>(FindingKind::kUnwritten), where, "the mbarrier at %p was not initialised (%s:%u)",
         static_cast<void*>(address), where.file, where.line);
  return *b;
}

/// Ends the phase if nothing is missing; those who waited for it become ready.
void complete(ClusterRunner& runner, Mbarrier& b) {
  if (b.pending != 0 || b.bytes_missing != 0) return;
  b.pending = b.arrivals;
  ++b.phase;
  ++runner.progress;
  for (Thread& t : runner.threads)
    if (!t.ended && t.wait == Wait::kMbarrier && t.waits_at == b.address && (b.phase & 1) != t.parity) {
      if (observer) observer->acquire(t, b.address);
      t.wait = Wait::kNothing;
      runner.make_ready(t);
    }
}

/// Someone waits: once all have arrived, the copies are made, and their bytes arrive.
void make_copies(ClusterRunner& runner, Thread& me, Mbarrier& b) {
  if (b.pending != 0 || b.copies.empty()) return;
  std::vector<AsyncCopy> copies;
  copies.swap(b.copies);
  for (const AsyncCopy& copy : copies) {
    make(me, copy);
    b.bytes_missing -= copy.bytes;
  }
  if (observer) observer->release(me, b.address);
  complete(runner, b);
}
bool someone_waits(const ClusterRunner& runner, const Mbarrier& b) {
  return std::any_of(runner.threads.begin(), runner.threads.end(), [&](const Thread& t) {
    return !t.ended && t.wait == Wait::kMbarrier && t.waits_at == b.address;
  });
}
}  // namespace

void finish_copies(Thread& t) {
  for (const AsyncCopy& copy : t.copies) make(t, copy);
  t.copies.clear();
  t.groups.clear();
}

namespace device {

void async_copy(void* to, const void* from, unsigned bytes, unsigned rest) {
  Thread& me = *current;
  const unsigned size = bytes + rest;
  if ((size != 4 && size != 8 && size != 16) || bytes > size || !aligned(to, size) ||
      (bytes != 0 && !aligned(from, size)) || !in_shared(*me.block, to, size))
    refuse(me.where, "a cp.async", to, from, bytes);
  const AsyncCopy copy{static_cast<std::byte*>(to),
                       static_cast<const std::byte*>(from),
                       bytes,
                       rest,
                       __builtin_return_address(0),
                       me.number,
                       nullptr};
  issue(me, copy);
  me.copies.push_back(copy);
}
void async_commit() { current->groups.push_back(current->copies.size()); }
void async_wait(unsigned groups_left) {
  Thread& me = *current;
  if (me.groups.size() <= groups_left) return;
  const std::size_t groups = me.groups.size() - groups_left, copies = me.groups[groups - 1];
  for (std::size_t i = 0; i < copies; ++i) make(me, me.copies[i]);
  me.copies.erase(me.copies.begin(), me.copies.begin() + static_cast<std::ptrdiff_t>(copies));
  me.groups.erase(me.groups.begin(), me.groups.begin() + static_cast<std::ptrdiff_t>(groups));
  for (std::size_t& end : me.groups) end -= copies;
}

void mbarrier_init(std::uint64_t* address, unsigned arrivals, Site where) {
  Thread& me = *current;
  ClusterRunner& runner = *me.block->runner;
  if (!in_shared(*me.block, address, 8) || reinterpret_cast<std::uintptr_t>(address) % 8 != 0 ||
      arrivals == 0)
    fail(static_cast<int>(FindingKind::kOutOfBounds), where,
         "an mbarrier for %u arrivals at %p (%s:%u): 8 bytes of shared memory, at least one arrival",
         arrivals, static_cast<void*>(address), where.file, where.line);
  if (!find(runner, address)) runner.mbarriers.push_back({});
  Mbarrier* b = find(runner, address);
  if (!b) b = &runner.mbarriers.back();
  *b = {address, arrivals, arrivals, 0, 0, {}};
  std::memset(address, 0, 8);
}

void mbarrier_arrive(std::uint64_t* address, unsigned expected_bytes, bool arrive, Site where) {
  Thread& me = *current;
  ClusterRunner& runner = *me.block->runner;
  Mbarrier& b = get(address, where);
  me.where = where;
  b.bytes_missing += expected_bytes;
  if (!arrive) return;
  if (b.pending == 0)
    fail(static_cast<int>(FindingKind::kDivergentBarrier), where,
         "one more arrival at an mbarrier than the %u it was initialised for (%s:%u)", b.arrivals, where.file,
         where.line);
  if (observer) observer->release(me, address);
  --b.pending;
  complete(runner, b);
  if (b.pending == 0 && someone_waits(runner, b)) make_copies(runner, me, b);
}

void mbarrier_complete(std::uint64_t* address, unsigned bytes, Site where) {
  Thread& me = *current;
  ClusterRunner& runner = *me.block->runner;
  Mbarrier& b = get(address, where);
  me.where = where;
  if (observer) observer->release(me, address);
  b.bytes_missing -= bytes;  // below 0 where they came before they were expected
  complete(runner, b);
}

bool mbarrier_wait(std::uint64_t* address, unsigned parity, Site where) {
  Thread& me = *current;
  ClusterRunner& runner = *me.block->runner;
  Mbarrier& b = get(address, where);
  parity &= 1;
  if ((b.phase & 1) == parity) make_copies(runner, me, b);
  if ((b.phase & 1) != parity) {
    if (observer) observer->acquire(me, address);
    return true;
  }
  me.waits_at = address;
  me.parity = parity;
  wait(Wait::kMbarrier, where);
  return true;
}

void bulk_copy(void* to, const void* from, unsigned bytes, std::uint64_t* address, Site where) {
  Thread& me = *current;
  if (bytes == 0 || bytes % 16 != 0 || !aligned(to) || !aligned(from) || !in_shared(*me.block, to, bytes))
    refuse(where, "a bulk copy", to, from, bytes);
  Mbarrier& b = get(address, where);
  const AsyncCopy copy{static_cast<std::byte*>(to),
                       static_cast<const std::byte*>(from),
                       bytes,
                       0,
                       __builtin_return_address(0),
                       me.number,
                       address};
  issue(me, copy);
  b.copies.push_back(copy);
  if (b.pending == 0 && someone_waits(*me.block->runner, b)) make_copies(*me.block->runner, me, b);
}

}  // namespace device
}  // namespace rooftile::emulated
