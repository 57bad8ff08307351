#include "rooftile/backend/emulated/checked/checker.h"

#include <algorithm>
#include <cstring>

extern "C" void __tsan_init();  // an address in this module, which stamps count from

namespace rooftile::emulated {
namespace {
std::int32_t pack(const void* pc) {
  return static_cast<std::int32_t>(reinterpret_cast<std::intptr_t>(pc) -
                                   reinterpret_cast<std::intptr_t>(&__tsan_init));
}
const void* unpack(std::int32_t pc) {
  return reinterpret_cast<const void*>(reinterpret_cast<std::intptr_t>(&__tsan_init) + pc);
}
}  // namespace

Checker checker;
Observer* const observer = &checker;

// The current thread's index as kernels see it, which they read like any memory.
extern "C" {
extern __thread uint3 checked_thread_index asm("threadIdx") __attribute__((tls_model("initial-exec")));
extern __thread uint3 checked_block_index asm("blockIdx") __attribute__((tls_model("initial-exec")));
extern __thread uint3 checked_block_size asm("blockDim") __attribute__((tls_model("initial-exec")));
extern __thread uint3 checked_grid_size asm("gridDim") __attribute__((tls_model("initial-exec")));
}

void Checker::access(const void* at, std::size_t bytes, AccessKind access, const void* pc, bool word) {
  if (!current || bytes == 0 || busy_) return;
  const Busy busy(*this);
  see(at, bytes, access, pc, word);
}

void Checker::see(const void* at, std::size_t bytes, AccessKind access, const void* pc, bool word) {
  Thread* t = current;
  const auto a = reinterpret_cast<std::uintptr_t>(at);
  if (a - reinterpret_cast<std::uintptr_t>(t->fiber->stack) < kStackBytes) {  // its own locals
    if (t->sums_pending) access_sums(*t, at, bytes, access, pc);
    return;
  }
  if (word && a % bytes != 0)
    tell(FindingKind::kMisaligned, pc, pc, int(t->number), t,
         "thread " + std::to_string(t->number) + (access == AccessKind::kRead ? " reads " : " writes ") +
             std::to_string(bytes) + " bytes at once from an address " + std::to_string(a % bytes) +
             " bytes past a multiple of " + std::to_string(bytes) + ": a GPU ends the launch here");
  const auto arenas = reinterpret_cast<std::uintptr_t>(runner_->arenas);
  if (a - arenas < runner_->arenas_bytes) {
    t->last_pc = pc;
    return access_shared(*t, a, bytes, access, pc);
  }
  for (const uint3* index :
       {&checked_thread_index, &checked_block_index, &checked_block_size, &checked_grid_size})
    if (a - reinterpret_cast<std::uintptr_t>(index) < sizeof(uint3)) return;
  t->last_pc = pc;
  access_global(*t, a, bytes, access, pc);
}

void Checker::access_sums(Thread& t, const void* at, std::size_t bytes, AccessKind access, const void* pc) {
  Site made;
  if (!wgmma_writes(t, at, bytes, &made)) return;
  tell(FindingKind::kMissingWait, pc, pc, int(t.number), &t,
       "thread " + std::to_string(t.number) + (access == AccessKind::kRead ? " reads" : " writes") +
           " an accumulator before it waited for the wgmma that writes it (" + (made.file ? made.file : "?") +
           ":" + std::to_string(made.line) + ")");
}

void Checker::begin_launch(const char* kernel, unsigned) {
  kernel_ = kernel;
  tracer_.begin_launch();
  clocks_.begin_launch();
  global_.limit();
}
void Checker::end_launch() {
  tracer_.end_launch();
  runner_ = nullptr;
}

void Checker::begin_cluster(ClusterRunner& runner) {
  const Busy busy(*this);
  runner_ = &runner;
  clocks_.begin_cluster(runner);
  pending_.clear();
  tracer_.begin_cluster(runner);
}
void Checker::end_cluster(ClusterRunner&) {
  const Busy busy(*this);
  tracer_.end_cluster();
}

void Checker::declare_shared(Block& block, const SharedArray& array) {
  const Busy busy(*this);
  if (shared_.size() <= block.rank) shared_.resize(block.rank + 1);
  Shared& s = shared_[block.rank];
  if (s.bytes.empty()) {
    s.bytes.resize(arena_stride());
    s.cells.resize(arena_stride() / 4);
  }
  // The first array of a block ends what the last block left, as far as that had arrays: cleared whole, 227
  // KiB a block took a fifth of layer_norm_backward's time.
  if (array.offset == 0) std::memset(s.bytes.data(), 0, std::exchange(s.used, 0));
  s.used = std::max(s.used, array.offset + array.bytes);
  std::memset(s.bytes.data() + array.offset, kThere, array.bytes);
}

std::string Checker::array_at(const Block& block, std::size_t offset) const {
  const SharedArray* before = nullptr;
  for (const SharedArray& a : block.arrays)
    if (a.offset <= offset) before = &a;
  if (!before) return "in front of all shared arrays";
  const std::string name = before->site ? before->site->name : "the dynamic shared memory";
  const std::size_t within = offset - before->offset;
  if (within < before->bytes)
    return name + " (byte " + std::to_string(within) + " of " + std::to_string(before->bytes) + ")";
  return std::to_string(within - before->bytes) + " bytes past the end of " + name + " (" +
         std::to_string(before->bytes) + " bytes)";
}

bool Checker::check_shared(Thread& t, const Block& block, std::size_t offset, std::size_t bytes,
                           AccessKind access, const void* pc) {
  std::uint8_t* state = shared_.size() > block.rank && offset < arena_stride()
                            ? shared_[block.rank].bytes.data() + offset
                            : nullptr;
  const std::size_t room = state ? std::min(bytes, arena_stride() - offset) : 0;
  std::uint8_t all = room == bytes && !block.arrays.empty() ? 0xff : 0, any = 0;
  for (std::size_t i = 0; i < room; ++i) {
    all &= state[i];
    any |= state[i];
  }
  const char* verb = access == AccessKind::kRead    ? " reads "
                     : access == AccessKind::kWrite ? " writes "
                                                    : " updates ";
  // A string for what is told alone: one for each access takes longer than all the rest.
  const auto who = [&] {
    return "thread " + std::to_string(t.number) + verb + std::to_string(bytes) + " bytes of shared memory ";
  };
  if (!(all & kThere)) {
    tell(FindingKind::kOutOfBounds, pc, pc, int(t.number), &t,
         who() + "out of bounds, " + array_at(block, offset));
    return false;
  }
  if (any & kPending) {
    for (const Pending& p : pending_)
      if (p.copy.to < block.arena + offset + bytes &&
          p.copy.to + p.copy.bytes + p.copy.zeros > block.arena + offset) {
        tell(FindingKind::kMissingWait, p.copy.pc, pc, int(p.copy.issuer), &t,
             who() + "that an asynchronous copy by thread " + std::to_string(p.copy.issuer) +
                 " has yet to write: " + array_at(block, offset) + "; nobody has waited for the copy");
        return false;
      }
  }
  if (access != AccessKind::kWrite && !(all & kWritten)) {
    tell(FindingKind::kUnwritten, pc, pc, int(t.number), &t,
         who() + "that nobody has written: " + array_at(block, offset));
    std::memset(state, kThere | kWritten, bytes);  // once is enough
  }
  if (access != AccessKind::kRead)
    for (std::size_t i = 0; i < bytes; ++i) state[i] |= kWritten;
  return true;
}

void Checker::access_shared(Thread& t, std::uintptr_t at, std::size_t bytes, AccessKind access,
                            const void* pc) {
  const auto first = reinterpret_cast<std::uintptr_t>(runner_->blocks[0].arena);
  const std::size_t distance = at - first, rank = distance / arena_stride(),
                    offset = distance % arena_stride();
  const Block& block = at < first || rank >= runner_->blocks.size() ? *t.block : runner_->blocks[rank];
  if (at < first || rank >= runner_->blocks.size()) {
    tell(FindingKind::kOutOfBounds, pc, pc, int(t.number), &t,
         "thread " + std::to_string(t.number) + " accesses memory outside its block's shared memory");
    return;
  }
  if (tracer_.on())
    tracer_.record(t, at, bytes,
                   access == AccessKind::kAtomic  ? 2
                   : access == AccessKind::kWrite ? 1
                                                  : 0,
                   true, pc);
  if (!check_shared(t, block, offset, bytes, access, pc)) return;
  if (access == AccessKind::kWrite && compares_ && keeps_) {
    Site asked;
    if (units_read(block, offset, bytes, &asked))
      tell(FindingKind::kMissingWait, pc, pc, int(t.number), &t,
           "thread " + std::to_string(t.number) + " writes shared memory that a store or a wgmma (" +
               (asked.file ? asked.file : "?") + ":" + std::to_string(asked.line) +
               ") has yet to read: " + array_at(block, offset) + "; nobody has waited for it");
    note_write(t, block, offset, bytes, t.where, false);
  }
  Shared& s = shared_[block.rank];
  last_at_ = at;
  visit(t, s.cells.data() + offset / 4, s.cells.size() - offset / 4, offset, bytes, access, pc, true);
}

/// An index that is wrong by a row or a block seldom leaves a tensor by more than its length. Of an address
/// farther away, the tensors around it do not tell which one was meant.
std::string Checker::range_beside(std::uintptr_t at, std::size_t bytes) const {
  constexpr std::uintptr_t kNear = 4096;  // of a shorter range
  const auto distance = [&](const Range& r) {
    return at >= r.end ? at - r.end : at + bytes <= r.begin ? r.begin - at - bytes : 0;
  };
  const Range* nearest = nullptr;
  for (const Range& r : globals_) {
    if (distance(r) >= std::max(r.end - r.begin, kNear)) continue;
    if (!nearest || distance(r) < distance(*nearest)) nearest = &r;
  }
  if (!nearest) return ": the address belongs to no tensor, and none is near";
  if (at >= nearest->end)
    return ", " + std::to_string(at - nearest->end) + " bytes past the end of " + nearest->name;
  if (at + bytes <= nearest->begin)
    return ", " + std::to_string(nearest->begin - at) + " bytes before the beginning of " + nearest->name;
  return std::string(", across the ") + (at < nearest->begin ? "beginning" : "end") + " of " + nearest->name;
}

void Checker::access_global(Thread& t, std::uintptr_t at, std::size_t bytes, AccessKind access,
                            const void* pc) {
  if (tracer_.on())
    tracer_.record(t, at, bytes,
                   access == AccessKind::kAtomic  ? 2
                   : access == AccessKind::kWrite ? 1
                                                  : 0,
                   false, pc);
  if (!globals_.empty()) {
    const std::lock_guard lock(mutex_);
    const bool known = std::any_of(globals_.begin(), globals_.end(),
                                   [&](const Range& r) { return at >= r.begin && at + bytes <= r.end; });
    if (!known && !in_module(at)) {
      const std::string text =
          "thread " + std::to_string(t.number) + (access == AccessKind::kRead ? " reads " : " writes ") +
          std::to_string(bytes) + " bytes of global memory out of bounds" + range_beside(at, bytes);
      add({FindingKind::kOutOfBounds,
           kernel_,
           text,
           pc,
           pc,
           {},
           {},
           int(t.number),
           int(t.number),
           t.block->index});
      return;
    }
  }
  if (access != AccessKind::kRead && !pending_.empty() && at < pending_to_ && at + bytes > pending_from_)
    for (const Pending& p : pending_) {
      const auto from = reinterpret_cast<std::uintptr_t>(p.copy.from);
      if (at < from + p.copy.bytes && at + bytes > from) {
        tell(FindingKind::kMissingWait, p.copy.pc, pc, int(p.copy.issuer), &t,
             "thread " + std::to_string(t.number) + " writes what an asynchronous copy by thread " +
                 std::to_string(p.copy.issuer) + " has yet to read");
        break;
      }
    }
  last_at_ = at;
  last_bytes_ = bytes;
  while (bytes > 0) {
    const std::size_t in_page = at % kShadowPage, here = std::min(bytes, kShadowPage - in_page);
    visit(t, global_.cells_of(at) + in_page / 4, kPageCells - in_page / 4, at, here, access, pc, false);
    at += here;
    bytes -= here;
  }
}

void Checker::visit(Thread& t, Cell* cells, std::size_t count, std::uintptr_t at, std::size_t bytes,
                    AccessKind access, const void* pc, bool shared) {
  Stamp now = clocks_.stamp(t);
  now.pc = pack(pc);
  now.kind = volatile_                       ? Stamp::Kind::volatile_word
             : access == AccessKind::kAtomic ? Stamp::Kind::atomic
                                             : Stamp::Kind::plain;
  std::size_t begin = at % 4;
  for (std::size_t i = 0; bytes > 0 && i < count; ++i) {
    const std::size_t here = std::min(bytes, 4 - begin);
    now.bytes = static_cast<std::uint8_t>(((1u << here) - 1) << begin);
    visit(t, cells[i], now, access != AccessKind::kRead, shared);
    bytes -= here;
    begin = 0;
  }
}

void Checker::visit(Thread& t, Cell& cell, Stamp now, bool writes, bool shared) {
  if (writes && now.is_volatile())
    for (const Stamp& read : cell.reads)
      if (live(read, shared) && read.thread == now.thread && read.is_volatile())
        now.kind = Stamp::Kind::volatile_update;
  // Lanes of a warp do not run in step: sums of volatile words that wait nowhere race. A flag is no sum.
  const auto in_step = [&](const Stamp& then) {
    return shared && then.is_volatile() && now.is_volatile() &&
           (then.kind == Stamp::Kind::volatile_update || now.kind == Stamp::Kind::volatile_update) &&
           then.thread / kWarpSize == now.thread / kWarpSize;
  };
  const auto conflicts = [&](const Stamp& then) {
    return compares_ && live(then, shared) && (then.bytes & now.bytes) != 0 &&
           (!(then.atomic() && now.atomic()) || in_step(then)) && !clocks_.ordered(then, t);
  };
  for (const Stamp& then : cell.writes)
    if (conflicts(then)) return tell_race(t, then, true, now, writes, shared);
  if (writes)
    for (const Stamp& then : cell.reads)
      if (conflicts(then)) return tell_race(t, then, false, now, writes, shared);
  if (!keeps_) return;
  // Keep this one in place of what it makes superfluous: the same bytes, earlier and in order; else, of the
  // concurrent ones, rather two from different warps.
  Stamp(&slots)[2] = writes ? cell.writes : cell.reads;
  const auto superfluous = [&](const Stamp& s) {
    return !live(s, shared) ||
           ((s.bytes & ~now.bytes) == 0 && (s.thread == now.thread || writes || clocks_.ordered(s, t)));
  };
  Stamp* place = &slots[0];
  if (superfluous(slots[0])) {
    if (superfluous(slots[1])) slots[1] = {};
  } else if (superfluous(slots[1]) || slots[0].thread / kWarpSize != now.thread / kWarpSize) {
    place = &slots[1];
  }
  *place = now;
  if (!writes) return;
  for (Stamp& s : cell.reads)
    if ((s.bytes & ~now.bytes) == 0) s = {};
}

std::string Checker::global_at(std::uintptr_t at, std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  for (const Range& r : globals_)
    if (at >= r.begin && at < r.end)
      return r.name + "[" + std::to_string((at - r.begin) / (bytes <= 8 ? bytes : 4)) + "]";
  return "";
}

/// "race on z[1]: thread 1 of block 0 and thread 0 of block 1 both write it, and nothing orders the two".
void Checker::tell_race(Thread& t, const Stamp& then, bool then_writes, const Stamp& now, bool writes,
                        bool shared) {
  const unsigned per_block = runner_->launch->threads_per_block, number = then.thread % per_block;
  std::string text = "race on ";
  if (shared) {
    const std::size_t distance = last_at_ - reinterpret_cast<std::uintptr_t>(runner_->blocks[0].arena);
    text += "shared " + array_at(runner_->blocks[distance / arena_stride()], distance % arena_stride());
  } else {
    const std::string element = global_at(last_at_, last_bytes_);
    text += element.empty() ? "global memory" : element;
  }
  const bool far = then.cluster != clocks_.cluster();
  const std::string group = runner_->blocks.size() > 1 ? " of cluster " : " of block ";
  const auto thread = [&](unsigned n, std::uint32_t cluster) {
    return "thread " + std::to_string(n) + (far ? group + std::to_string(cluster) : "");
  };
  const auto verb = [](const Stamp& s, bool does_write) {
    return s.kind == Stamp::Kind::atomic ? "update" : does_write ? "write" : "read";
  };
  const std::string first = thread(number, clocks_.cluster_index(then)),
                    second = thread(t.number, clocks_.cluster_index(now)), does = verb(then, then_writes),
                    also = verb(now, writes);
  text += ": " + first +
          (does == also ? " and " + second + " both " + does + " it"
                        : " " + does + "s it, " + second + " " + also + "s it");
  text += ", and nothing orders the two";
  if (now.is_volatile() && then.is_volatile()) text += ": volatile makes no lane wait, __syncwarp() does";
  tell(FindingKind::kRace, unpack(then.pc), unpack(now.pc), int(number), &t, std::move(text));
}

void Checker::volatile_word(Thread& t, const void* at, unsigned bytes, bool writes, const void* pc) {
  const Busy busy(*this);
  clocks_.atomic(t, at, !writes, writes, false);
  volatile_ = true;
  see(at, bytes, writes ? AccessKind::kWrite : AccessKind::kRead, pc);
  volatile_ = false;
}

void Checker::atomic(Thread& t, const void* at, unsigned bytes, bool reads, bool wrote, bool ordered,
                     const void* pc) {
  const Busy busy(*this);
  clocks_.atomic(t, at, reads, wrote, ordered);
  see(at, bytes, AccessKind::kAtomic, pc);
}

void Checker::async_issued(Thread& t, const AsyncCopy& copy) {
  const Busy busy(*this);
  t.last_pc = copy.pc;
  // It is the issuer who must know that nobody uses the place any more, and the one who waits that others
  // learn from.
  keeps_ = false;
  see(copy.to, copy.bytes + copy.zeros, AccessKind::kWrite, copy.pc);
  keeps_ = true;
  if (copy.bytes != 0) see(copy.from, copy.bytes, AccessKind::kRead, copy.pc);
  const Block* block = nullptr;
  for (const Block& b : runner_->blocks)
    if (copy.to >= b.arena && copy.to < b.arena + arena_stride()) block = &b;
  if (!block) return;
  std::uint8_t* state = shared_[block->rank].bytes.data() + (copy.to - block->arena);
  for (std::size_t i = 0; i < copy.bytes + copy.zeros; ++i) state[i] |= kPending;
  const auto from = reinterpret_cast<std::uintptr_t>(copy.from);
  pending_from_ = pending_.empty() ? from : std::min(pending_from_, from);
  pending_to_ = pending_.empty() ? from + copy.bytes : std::max(pending_to_, from + copy.bytes);
  pending_.push_back({copy, block->rank});
}

void Checker::async_done(Thread& t, const AsyncCopy& copy) {
  const Busy busy(*this);
  const auto found = std::find_if(pending_.begin(), pending_.end(), [&](const Pending& p) {
    return p.copy.to == copy.to && p.copy.from == copy.from && p.copy.issuer == copy.issuer;
  });
  if (found == pending_.end()) return;
  const Block& block = runner_->blocks[found->rank];
  *found = pending_.back();
  pending_.pop_back();
  std::uint8_t* state = shared_[block.rank].bytes.data() + (copy.to - block.arena);
  for (std::size_t i = 0; i < copy.bytes + copy.zeros; ++i) state[i] &= static_cast<std::uint8_t>(~kPending);
  const bool traced = tracer_.pause();  // it was counted when it was issued
  compares_ = false;
  Thread* const before = std::exchange(current, &t);
  see(copy.to, copy.bytes + copy.zeros, AccessKind::kWrite, copy.pc);
  current = before;
  compares_ = true;
  tracer_.resume(traced);
}

}  // namespace rooftile::emulated
