// The copy engine: boxes of tensors and plain bytes into shared memory, arriving at an mbarrier; boxes out of
// it, in groups that the thread waits for.
#include <algorithm>
#include <cstring>

#include "rooftile/backend/emulated/async_units.h"

namespace rooftile::emulated {
namespace {
constexpr int kMissing = static_cast<int>(FindingKind::kMissingWait);
constexpr int kBounds = static_cast<int>(FindingKind::kOutOfBounds);

const EncodedMap& get(const cuda::TensorMap* map, int rank, Site where) {
  const EncodedMap* m = decode(map);
  if (!m)
    fail(static_cast<int>(FindingKind::kUnwritten), where,
         "%p is no tensor map that make_tensor_map made (%s:%u)", static_cast<const void*>(map),
         base_name(where.file), where.line);
  if (m->rank != rank)
    fail(kBounds, where, "%d coordinates for a tensor map of %d dimensions (%s:%u)", rank, m->rank,
         base_name(where.file), where.line);
  return *m;
}

Range place(const void* at, std::size_t bytes, std::size_t alignment, const char* what, Site where) {
  const Range r = range_of(*current->block->runner, at, bytes);
  if (!r.block || r.begin % alignment != 0)
    fail(kBounds, where,
         "%s of %zu bytes at %p (%s:%u): its place in shared memory is in one array, at a multiple of %zu "
         "bytes",
         what, bytes, at, base_name(where.file), where.line, alignment);
  return r;
}

/// Poison in its place, and it is on the way.
void begin(Load load) {
  AsyncUnits& u = units();
  const Mbarrier* b = find_mbarrier(*u.runner, load.barrier);
  const Site where = load.where;
  if (!b)
    fail(static_cast<int>(FindingKind::kUnwritten), where,
         "a load that arrives at %p in block %u of the cluster, where no mbarrier was initialised (%s:%u)",
         static_cast<void*>(load.barrier), load.to.block->rank, base_name(where.file), where.line);
  if (!b->visible)
    fail(kMissing, where,
         "no fence_mbarrier_init stands between the mbarrier's initialisation (%s:%u) and a load to it "
         "(%s:%u)",
         base_name(b->made.file), b->made.line, base_name(where.file), where.line);
  if (load.to.block->alive == 0)
    fail(kBounds, where, "a load into block %u of the cluster, which has ended (%s:%u)", load.to.block->rank,
         base_name(where.file), where.line);
  for (const Load& l : u.loads)
    if (l.to.meets(load.to))
      fail(kMissing, where, "a load (%s:%u) into shared memory that an earlier one (%s:%u) has yet to write",
           base_name(where.file), where.line, base_name(l.where.file), l.where.line);
  refuse_in_use(load.to, "a load", where);
  refuse_unread(load.to, "a load", where);
  const std::uint32_t bytes = load.to.bytes();
  load.issuer = current;
  load.told = {
      load.to.data(),  load.from,   load.from ? bytes : 0, load.from ? 0 : bytes, __builtin_return_address(0),
      current->number, load.barrier};
  if (observer) observer->async_issued(*current, load.told);
  std::memset(load.to.data(), 0xff, bytes);
  std::vector<Written>& written = u.blocks[load.to.block->rank].written;
  for (std::size_t i = load.to.begin / 16; i < std::min<std::size_t>(load.to.end / 16, written.size()); ++i)
    written[i] = {};
  std::erase_if(u.loaded, [&](const Loaded& l) { return l.range.meets(load.to); });
  u.loads.push_back(load);
}

void make(AsyncUnits& u, const Load& l) {
  // By the thread that asked for it, as the observer sees it; here is the host, or any other thread.
  if (observer) observer->async_done(*l.issuer, l.told);
  if (l.map.magic == 0) {
    std::memmove(l.to.data(), l.from, l.to.bytes());
  } else {
    for_each_run(l.map, l.at.data(), [&](std::uint32_t offset, std::uint32_t bytes, const std::byte* from) {
      std::byte* piece = l.to.block->arena + swizzled(l.to.begin + offset, l.map.swizzle);
      if (from)
        std::memmove(piece, from, bytes);
      else
        std::memset(piece, 0, bytes);
    });
  }
  u.loaded.push_back({l.to, l.map.swizzle, l.map.magic != 0, l.where});
  complete_bytes(*u.runner, l);
}

void make(const Store& s) {
  for_each_run(s.map, s.at.data(), [&](std::uint32_t offset, std::uint32_t bytes, std::byte* to) {
    if (to) std::memmove(to, s.from.block->arena + swizzled(s.from.begin + offset, s.map.swizzle), bytes);
  });
}
}  // namespace

bool make_a_load(AsyncUnits& u) {
  if (u.loads.empty()) return false;
  const std::size_t which = u.runner->random == 0 ? 0 : u.runner->draw() % u.loads.size();
  const Load l = u.loads[which];
  u.loads.erase(u.loads.begin() + static_cast<std::ptrdiff_t>(which));
  make(u, l);
  return true;
}

namespace device {

void bulk_copy(void* to, const void* from, unsigned bytes, std::uint64_t* barrier, Site where) {
  if (bytes == 0 || bytes % 16 != 0 || reinterpret_cast<std::uintptr_t>(from) % 16 != 0)
    fail(kBounds, where,
         "a bulk copy of %u bytes from %p to %p (%s:%u): to shared memory, sizes and addresses multiples of "
         "16",
         bytes, from, to, base_name(where.file), where.line);
  Load load;
  load.to = place(to, bytes, 16, "a bulk copy", where);
  load.barrier = barrier;
  load.from = static_cast<const std::byte*>(from);
  load.where = where;
  begin(load);
}

void tensor_load(void* to, const cuda::TensorMap* map, const int* at, int rank, std::uint64_t* barrier,
                 std::uint32_t blocks, Site where) {
  const EncodedMap& m = get(map, rank, where);
  ClusterRunner& runner = *current->block->runner;
  const auto all = static_cast<std::uint32_t>(runner.blocks.size()), mask = blocks & ~kToAll;
  if (mask >> all != 0 || (blocks == kToAll))
    fail(kBounds, where, "a load to the blocks of mask %#x, in a cluster of %u (%s:%u)", mask, all,
         base_name(where.file), where.line);
  Load load;
  load.to = place(to, m.box_bytes(), 128, "a tensor load", where);
  load.barrier = barrier;
  load.map = m;
  std::copy_n(at, rank, load.at.begin());
  load.where = where;
  if (blocks == 0) return begin(load);
  const std::uint32_t barrier_at = shared_offset(barrier, where);
  for (std::uint32_t r = 0; r < all; ++r) {
    if ((mask >> r & 1) == 0) continue;
    load.to.block = &runner.blocks[r];
    load.barrier = reinterpret_cast<std::uint64_t*>(runner.blocks[r].arena + barrier_at);
    begin(load);
  }
}

void tensor_store(const cuda::TensorMap* map, const int* at, int rank, const void* from, Site where) {
  AsyncUnits& u = units();
  Store store;
  store.map = get(map, rank, where);
  store.from = place(from, store.map.box_bytes(), 128, "a tensor store", where);
  std::copy_n(at, rank, store.at.begin());
  store.where = where;
  store.issuer = current;
  store.group = own_units().store_groups;
  for (std::uint32_t piece = store.from.begin; piece < store.from.end; piece += 16)
    if (const Written* w = unfenced(u, *store.from.block, piece))
      fail(kMissing, where,
           "no fence_proxy_async stands between thread %u's write to shared memory (%s%s:%u) and the store "
           "that "
           "reads it (%s:%u)",
           w->writer->number, w->exact ? "" : "after ", base_name(w->where.file), w->where.line,
           base_name(where.file), where.line);
  for (const Load& l : u.loads)
    if (l.to.meets(store.from))
      fail(kMissing, where, "a store (%s:%u) of shared memory that the load of %s:%u has yet to write",
           base_name(where.file), where.line, base_name(l.where.file), l.where.line);
  u.stores.push_back(store);
}
void bulk_commit(Site) { ++own_units().store_groups; }
void bulk_wait(unsigned groups_left, Site) {
  std::erase_if(units().stores, [&](const Store& s) {
    if (s.issuer != current || s.group + groups_left >= own_units().store_groups) return false;
    make(s);
    return true;
  });
}

}  // namespace device
}  // namespace rooftile::emulated
