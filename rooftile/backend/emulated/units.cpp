// What the asynchronous units of a cluster have in common: when they work, what is left when its threads have
// ended, which shared memory they may see; and setmaxnreg. Warps give registers back to their block's pool,
// and wait until there are enough to take. A block enters with what ptxas gives a kernel under
// __launch_bounds__(threads, 1): 65536 over its threads, rounded down to 8.
#include <algorithm>
#include <bit>
#include <cstdio>

#include "rooftile/backend/emulated/async_units.h"
#include "rooftile/backend/emulated/include/cuda_bf16.h"
#include "rooftile/backend/emulated/include/cuda_fp16.h"

namespace rooftile::emulated {
namespace {
constexpr int kMissing = static_cast<int>(FindingKind::kMissingWait);
}

void start_units(ClusterRunner& runner) {
  if (!runner.units) runner.units = std::make_shared<AsyncUnits>();
  AsyncUnits& u = *runner.units;
  if (!u.used && u.runner == &runner && u.blocks.size() == runner.blocks.size() &&
      u.threads.size() == runner.threads.size())
    return;
  const unsigned threads = runner.launch->threads_per_block;
  u.runner = &runner;
  u.used = false;
  u.loads.clear(), u.stores.clear(), u.loaded.clear();
  u.blocks.assign(runner.blocks.size(), {});
  u.threads.assign(runner.threads.size(), {});
  u.order = u.fenced_before = 0;
  for (BlockUnits& b : u.blocks) {
    b.warpgroups.resize(threads / kWarpgroup);
    b.registers.assign((threads + kWarpSize - 1) / kWarpSize,
                       std::min(65536 / std::max(threads, 1u) / 8 * 8, 255u));
  }
}

bool units_busy(const ClusterRunner& runner) {
  const AsyncUnits& u = *runner.units;
  if (!u.used) return false;
  return !u.loads.empty() || std::any_of(u.blocks.begin(), u.blocks.end(), [](const BlockUnits& b) {
    return std::any_of(b.warpgroups.begin(), b.warpgroups.end(),
                       [](const Warpgroup& g) { return g.wanted > g.first; });
  });
}

bool run_units(ClusterRunner& runner) {
  AsyncUnits& u = *runner.units;
  if (!u.used) return false;
  if (runner.random != 0 && (runner.draw() & 1) != 0) return make_a_load(u) || run_tensor_cores(u);
  return run_tensor_cores(u) || make_a_load(u);
}

/// At a thread's end.
void finish_units(Thread& t) {
  const AsyncUnits& u = *t.block->runner->units;
  if (!u.used) return;
  const ThreadUnits& own = u.threads[t.in_cluster];
  for (const Store& s : u.stores)
    if (s.issuer == &t)
      fail(kMissing, s.where,
           "thread %u ended, and its store of %s:%u has yet to read shared memory: no tensor_store_wait_read "
           "for "
           "it%s",
           t.number, base_name(s.where.file), s.where.line,
           s.group == own.store_groups ? ", which was not committed either" : "");
  if (!own.pending.empty())
    fail(kMissing, t.where, "thread %u ended without waiting for its wgmma%s", t.number,
         own.committed < own.issued ? ", which was not committed either" : "");
}

/// When all threads have ended.
void check_units(ClusterRunner& runner) {
  const AsyncUnits& u = *runner.units;
  if (!u.used) return;
  for (const Mbarrier& b : runner.mbarriers)
    if (b.loaded > b.seen)
      return report(
          runner, FindingKind::kMissingWait, b.announced_at,
          "the block ended, and nobody waited for phase %u of the mbarrier of %s:%u, which brought what "
          "was announced at %s:%u: more is loaded than used",
          b.loaded - 1, base_name(b.made.file), b.made.line, base_name(b.announced_at.file),
          b.announced_at.line);
  if (u.loads.empty()) return;
  const Load& l = u.loads.front();
  const Mbarrier& b = *find_mbarrier(runner, l.barrier);
  report(runner, FindingKind::kMissingWait, l.where,
         "the block ended while %zu loads into its shared memory are on the way, the first from thread %u at "
         "%s:%u, to the mbarrier of %s:%u: nobody waited for them",
         u.loads.size(), l.issuer->number, base_name(l.where.file), l.where.line, base_name(b.made.file),
         b.made.line);
}

void describe_wait(const Thread& t, char* text, std::size_t capacity) {
  text[0] = '\0';
  if (t.wait == Wait::kMbarrier) describe_mbarrier(t, text, capacity);
  if (t.wait == Wait::kWgmma) describe_wgmma(t, text, capacity);
  if (t.wait == Wait::kRegisters)
    std::snprintf(text, capacity, ": %u more for its warp, and the block has %u free",
                  t.block->runner->units->threads[t.in_cluster].registers_wanted,
                  t.block->runner->units->blocks[t.block->rank].free_registers);
}

Range range_of(const ClusterRunner& runner, const void* pointer, std::size_t bytes) {
  const auto* p = static_cast<const std::byte*>(pointer);
  for (const Block& b : runner.blocks)
    for (const SharedArray& a : b.arrays)
      if (p >= b.arena + a.offset && p + bytes <= b.arena + a.offset + a.bytes) {
        const auto begin = static_cast<std::uint32_t>(p - b.arena);
        return {&b, begin, begin + static_cast<std::uint32_t>(bytes)};
      }
  return {};
}

// ---- What ordinary instructions wrote: copy engine and tensor cores may not see it before a proxy fence, of
// the writer or of one who knows of the write.

void note_write(const Thread& t, const Block& block, std::size_t offset, std::size_t bytes, Site where,
                bool exact) {
  AsyncUnits& u = *block.runner->units;
  u.used = true;
  std::vector<Written>& written = u.blocks[block.rank].written;
  if (written.size() < (offset + bytes + 15) / 16) written.resize((block.arena_used + 15) / 16);
  const std::size_t end = std::min((offset + bytes + 15) / 16, written.size());
  const Written w{&t, block.runner->progress, ++u.order, where, exact};
  for (std::size_t i = offset / 16; i < end; ++i) written[i] = w;
}

const Written* unfenced(const AsyncUnits& u, const Block& block, std::uint32_t address) {
  const std::vector<Written>& written = u.blocks[block.rank].written;
  if (address / 16 >= written.size()) return nullptr;
  const Written& w = written[address / 16];
  if (!w.writer || w.order < u.threads[w.writer->in_cluster].proxy_fenced || w.progress < u.fenced_before)
    return nullptr;
  return &w;
}

bool never_written(const AsyncUnits& u, const Block& block, std::uint32_t address, std::uint32_t bytes) {
  const Range r{&block, address, address + bytes};
  const std::vector<Written>& written = u.blocks[block.rank].written;
  if (address / 16 < written.size() && written[address / 16].writer) return false;
  return std::none_of(u.loaded.begin(), u.loaded.end(), [&](const Loaded& l) { return l.range.meets(r); });
}

bool units_read(const Block& block, std::size_t offset, std::size_t bytes, Site* asked) {
  const AsyncUnits& u = *block.runner->units;
  if (!u.used) return false;
  const auto begin = static_cast<std::uint32_t>(offset);
  const Range r{&block, begin, begin + static_cast<std::uint32_t>(bytes)};
  for (const Store& s : u.stores)
    if (s.from.meets(r)) {
      *asked = s.where;
      return true;
    }
  std::size_t warpgroup = 0;
  const WgmmaStep* s = step_that_reads(u, r, &warpgroup);
  if (s) *asked = s->where;
  return s != nullptr;
}

void refuse_unread(const Range& r, const char* who, Site where) {
  for (const Store& s : units().stores)
    if (s.from.meets(r))
      fail(kMissing, where,
           "%s (%s:%u) writes shared memory that a store (%s:%u) has yet to read: no tensor_store_wait_read "
           "for it",
           who, base_name(where.file), where.line, base_name(s.where.file), s.where.line);
}

namespace device {

void proxy_fence() {
  AsyncUnits& u = units();
  own_units().proxy_fenced = ++u.order;
  u.fenced_before = std::max(u.fenced_before, current->learnt);
  mbarrier_init_fence();
}

void shared_written(const void* at, unsigned bytes, Site where) {
  const Range r = range_of(*current->block->runner, at, bytes);
  if (!r.block) return;
  AsyncUnits& u = units();
  refuse_unread(r, "stmatrix", where);
  refuse_in_use(r, "stmatrix", where);
  for (const Load& l : u.loads)
    if (l.to.meets(r))
      fail(kMissing, where, "stmatrix (%s:%u) to shared memory that the load of %s:%u has yet to write",
           base_name(where.file), where.line, base_name(l.where.file), l.where.line);
  note_write(*current, *r.block, r.begin, bytes, where, true);
}

std::uint32_t shared_address(const void* pointer, Site where) {
  const unsigned rank = current->block->runner->blocks.size() > 1 ? current->block->rank : 0;
  return shared_offset(pointer, where) | rank << 24;
}

void set_max_registers(unsigned count, bool increase, Site where) {
  Thread& me = *current;
  warp_operation(WarpOperation::kSync, ~0u, 0, 0, where);
  BlockUnits& block = units().blocks[me.block->rank];
  unsigned& mine = block.registers[me.number / kWarpSize];
  if (me.lane == 0) {
    if (increase ? count < mine : count > mine)
      fail(static_cast<int>(FindingKind::kTrap), where,
           "setmaxnreg.%s to %u registers, and the warp has %u (%s:%u)", increase ? "inc" : "dec", count,
           mine, base_name(where.file), where.line);
    if (!increase) {
      block.free_registers += (mine - count) * kWarpSize;
      mine = count;
      for (unsigned i = 0; i < me.block->runner->launch->threads_per_block; ++i) {
        Thread& t = me.block->threads[i];
        if (t.wait != Wait::kRegisters) continue;
        t.wait = Wait::kNothing;
        me.block->runner->make_ready(t);
      }
    } else {
      const unsigned more = (count - mine) * kWarpSize;
      own_units().registers_wanted = more;
      while (block.free_registers < more) wait(Wait::kRegisters, where);
      block.free_registers -= more;
      mine = count;
    }
  }
  warp_operation(WarpOperation::kSync, ~0u, 0, 0, where);
}

std::uint32_t pack(bool bf16, float low, float high, Site where) {
  for (const float x : {low, high}) refuse_poison(std::bit_cast<std::uint32_t>(x), where);
  return bf16 ? std::uint32_t{__float2bfloat16_rn(high).bits} << 16 | __float2bfloat16_rn(low).bits
              : std::uint32_t{__float2half_rn(high).bits} << 16 | __float2half_rn(low).bits;
}

}  // namespace device
}  // namespace rooftile::emulated
