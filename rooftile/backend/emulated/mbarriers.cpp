// mbarriers: a phase ends when nobody's arrival and no announced byte is missing. Loads arrive with their
// bytes.
#include <cstdio>
#include <cstring>

#include "rooftile/backend/emulated/async_units.h"

namespace rooftile::emulated {
namespace {
constexpr std::int64_t kMostBytes = (1 << 20) - 1;  // of a phase

Mbarrier& get(std::uint64_t* address, Site where) {
  ClusterRunner& runner = *current->block->runner;
  Mbarrier* b = find_mbarrier(runner, address);
  if (!b)
    fail(static_cast<int>(FindingKind::kUnwritten), where, "the mbarrier at %p was not initialised (%s:%u)",
         static_cast<void*>(address), base_name(where.file), where.line);
  if (b->block->alive == 0)
    fail(static_cast<int>(FindingKind::kOutOfBounds), where,
         "an arrival at an mbarrier of block %u of the cluster, which has ended (%s:%u)", b->block->rank,
         base_name(where.file), where.line);
  return *b;
}

/// Ends the phase if nothing is missing. Loads that are still on the way would then count for the next.
void complete(ClusterRunner& runner, Mbarrier& b) {
  if (b.pending != 0 || b.bytes_missing != 0) return;
  for (const Load& l : runner.units->loads)
    if (l.barrier == b.address)
      return report(
          runner, FindingKind::kMissingWait, l.where,
          "phase %u of the mbarrier of %s:%u ended with the %lld bytes that were announced (%s:%u), "
          "while a load of %u bytes to it is on the way (%s:%u): expect_tx is too small",
          b.phase, base_name(b.made.file), b.made.line, static_cast<long long>(b.announced),
          base_name(b.announced_at.file), b.announced_at.line, l.to.bytes(), base_name(l.where.file),
          l.where.line);
  b.pending = b.arrivals;
  ++b.phase;
  if (b.loads != 0) b.loaded = b.phase;
  b.announced = 0;
  b.loads = 0;
  ++runner.progress;
  for (Thread& t : runner.threads)
    if (!t.ended && t.wait == Wait::kMbarrier && t.waits_at == b.address && (b.phase & 1) != t.parity) {
      if (observer) observer->acquire(t, b.address);
      b.seen = b.phase;
      t.wait = Wait::kNothing;
      runner.make_ready(t);
    }
}
}  // namespace

Mbarrier* find_mbarrier(ClusterRunner& runner, const std::uint64_t* address) {
  for (Mbarrier& b : runner.mbarriers)
    if (b.address == address) return &b;
  return nullptr;
}

void complete_bytes(ClusterRunner& runner, const Load& l) {
  Mbarrier& b = *find_mbarrier(runner, l.barrier);
  b.bytes_missing -= l.to.bytes();
  ++b.loads;
  if (observer) observer->release(*l.issuer, b.address);
  if (b.pending == 0 && b.bytes_missing < 0)
    return report(
        runner, FindingKind::kMissingWait, l.where,
        "%lld bytes more came to the mbarrier of %s:%u (block %u of the cluster) than the %lld "
        "announced (%s:%u), the last by the load at %s:%u: expect_tx is too small, or too many blocks "
        "send here",
        static_cast<long long>(-b.bytes_missing), base_name(b.made.file), b.made.line, l.to.block->rank,
        static_cast<long long>(b.announced), base_name(b.announced_at.file), b.announced_at.line,
        base_name(l.where.file), l.where.line);
  complete(runner, b);
}

void describe_mbarrier(const Thread& t, char* text, std::size_t capacity) {
  const ClusterRunner& runner = *t.block->runner;
  for (const Mbarrier& b : runner.mbarriers) {
    if (b.address != t.waits_at) continue;
    std::int64_t coming = 0;
    for (const Load& l : runner.units->loads)
      if (l.barrier == b.address) coming += l.to.bytes();
    char arrivals[60] = "", bytes[120] = "";
    if (b.pending != 0)
      std::snprintf(arrivals, sizeof arrivals, "%u of %u arrivals missing", b.pending, b.arrivals);
    if (b.bytes_missing != 0)
      std::snprintf(bytes, sizeof bytes, "%s%lld of %lld bytes missing, %lld on the way",
                    b.pending != 0 ? ", " : "", static_cast<long long>(b.bytes_missing),
                    static_cast<long long>(b.announced), static_cast<long long>(coming));
    std::snprintf(text, capacity, " for parity %u of the one initialised at %s:%u, in phase %u: %s%s",
                  t.parity, base_name(b.made.file), b.made.line, b.phase, arrivals, bytes);
    return;
  }
}

namespace device {

void mbarrier_init(std::uint64_t* address, unsigned arrivals, Site where) {
  Thread& me = *current;
  ClusterRunner& runner = *me.block->runner;
  const Range r = range_of(runner, address, 8);
  if (r.block != me.block || r.begin % 8 != 0 || arrivals == 0)
    fail(static_cast<int>(FindingKind::kOutOfBounds), where,
         "an mbarrier for %u arrivals at %p (%s:%u): 8 bytes of the block's shared memory, at least one "
         "arrival",
         arrivals, static_cast<void*>(address), base_name(where.file), where.line);
  Mbarrier* b = find_mbarrier(runner, address);
  if (!b) b = &runner.mbarriers.emplace_back();
  *b = {};
  b->address = address;
  b->block = me.block;
  b->arrivals = b->pending = arrivals;
  b->made = where;
  b->maker = me.in_cluster;
  std::memset(address, 0, 8);
}
void mbarrier_init_fence() {
  for (Mbarrier& b : current->block->runner->mbarriers)
    if (b.maker == current->in_cluster) b.visible = true;
}

void mbarrier_arrive(std::uint64_t* address, unsigned expected_bytes, bool arrive, Site where) {
  Thread& me = *current;
  Mbarrier& b = get(address, where);
  me.where = where;
  b.bytes_missing += expected_bytes;
  if (expected_bytes != 0) b.announced += expected_bytes, b.announced_at = where;
  if (b.bytes_missing > kMostBytes)
    fail(static_cast<int>(FindingKind::kTrap), where,
         "an mbarrier that waits for %lld bytes; a phase has at most %lld (%s:%u)",
         static_cast<long long>(b.bytes_missing), static_cast<long long>(kMostBytes), base_name(where.file),
         where.line);
  if (!arrive) return;
  if (b.pending == 0)
    fail(static_cast<int>(FindingKind::kDivergentBarrier), where,
         "one more arrival at an mbarrier than the %u it was initialised for (%s:%u), before its phase %u is "
         "over "
         "(%s:%u)",
         b.arrivals, base_name(b.made.file), b.made.line, b.phase, base_name(where.file), where.line);
  if (observer) observer->release(me, address);
  --b.pending;
  complete(*me.block->runner, b);
}

void mbarrier_complete(std::uint64_t* address, unsigned bytes, Site where) {
  Thread& me = *current;
  Mbarrier& b = get(address, where);
  me.where = where;
  if (observer) observer->release(me, address);
  b.bytes_missing -= bytes;  // below 0 where they came before they were expected
  complete(*me.block->runner, b);
}

bool mbarrier_wait(std::uint64_t* address, unsigned parity, Site where) {
  Thread& me = *current;
  Mbarrier& b = get(address, where);
  parity &= 1;
  if ((b.phase & 1) != parity) {
    if (observer) observer->acquire(me, address);
    b.seen = b.phase;
  } else {
    me.waits_at = address;
    me.parity = parity;
    wait(Wait::kMbarrier, where);
  }
  me.learnt = me.block->runner->progress;
  return true;
}

}  // namespace device
}  // namespace rooftile::emulated
