// Copies by threads (cp.async). The hardware may make them at any time until they are waited for; here that
// is the latest moment, and until then their destination is NaN: a missing wait shows at every run.
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
bool aligned(const void* p, unsigned to) { return reinterpret_cast<std::uintptr_t>(p) % to == 0; }

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

}  // namespace device
}  // namespace rooftile::emulated
