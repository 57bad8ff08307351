// wgmma: a warpgroup's products, in order, in groups that are waited for. Until then poison stands in the
// accumulators; operands are read at the last moment, so that a slot which is given back too early is found.
#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstring>

#include "rooftile/backend/emulated/async_units.h"
#include "rooftile/backend/emulated/tensor_core.h"

namespace rooftile::emulated {
namespace {
using device::Product;
constexpr int kMissing = static_cast<int>(FindingKind::kMissingWait);
constexpr int kDivergent = static_cast<int>(FindingKind::kDivergentBarrier);
constexpr int kBounds = static_cast<int>(FindingKind::kOutOfBounds);

Warpgroup& own_warpgroup(Site where) {
  const Thread& me = *current;
  std::vector<Warpgroup>& all = units().blocks[me.block->rank].warpgroups;
  if (me.number / kWarpgroup >= all.size())
    fail(kDivergent, where, "wgmma by thread %u, which is in no whole warpgroup (%s:%u)", me.number,
         base_name(where.file), where.line);
  return all[me.number / kWarpgroup];
}

/// A register's bits, which may be a float's or an integer's.
std::uint32_t word_at(const float* at) {
  std::uint32_t bits;
  std::memcpy(&bits, at, sizeof bits);
  return bits;
}
/// The row and the column of a thread's register i.
std::size_t row_of(unsigned thread, int i) {
  return thread / 32 * 16 + thread % 32 / 4 + static_cast<unsigned>(i % 4 / 2) * 8;
}
std::size_t column_of(unsigned thread, int i) {
  return static_cast<unsigned>(i / 4 * 8 + i % 2) + thread % 4 * 2;
}

Range bounds(const Block& block, const MatrixOperand& o) {
  Range r{&block, ~0u, 0};
  for_each_piece(o, [&](std::uint32_t address, int, int) {
    r.begin = std::min(r.begin, address), r.end = std::max(r.end, address + 16);
  });
  return r;
}
/// Whether a piece of the operand lies in the range: exactly, where its bounds meet it.
bool reads(const Range& around, const MatrixOperand& o, const Range& r) {
  if (!around.meets(r)) return false;
  bool any = false;
  for_each_piece(o,
                 [&](std::uint32_t address, int, int) { any |= address < r.end && address + 16 > r.begin; });
  return any;
}
bool reads(const WgmmaStep& s, const Range& r) {
  return (!s.product.a_registers && reads(s.a_bounds, s.a, r)) || reads(s.b_bounds, s.b, r);
}

/// Whether what the product reads in the range is poison.
bool poisoned(const Block& block, const WgmmaStep& s, const Range& r) {
  bool any = false;
  const auto look = [&](const MatrixOperand& o) {
    for_each_piece(o, [&](std::uint32_t address, int, int) {
      std::uint16_t first;
      std::memcpy(&first, block.arena + address, 2);
      any |= address < r.end && address + 16 > r.begin && first == 0xffff;
    });
  };
  if (!s.product.a_registers) look(s.a);
  look(s.b);
  return any;
}

/// What can be said of an operand when it is issued. Returns its bounds.
Range check_operand(const char* name, const MatrixOperand& o, Site where) {
  const MatrixDescriptor d(o.descriptor);
  const Block& block = *current->block;
  const AsyncUnits& u = units();
  const Range r = bounds(block, o);
  if (range_of(*block.runner, block.arena + r.begin, r.bytes()).block != &block)
    fail(kBounds, where,
         "wgmma (%s:%u) reads %s from shared addresses %#x to %#x, outside of the block's arrays (start %#x, "
         "leading %u, stride %u)",
         base_name(where.file), where.line, name, r.begin, r.end, d.start, d.leading, d.stride);
  if (d.base_offset != 0)
    fail(static_cast<int>(FindingKind::kTrap), where,
         "a descriptor with a base offset is not emulated (%s:%u)", base_name(where.file), where.line);
  std::bitset<(1 << 18) / 16>& seen = units().seen;
  bool twice = false;
  for_each_piece(
      o, [&](std::uint32_t address, int, int) { twice |= seen[address / 16], seen[address / 16] = true; });
  for_each_piece(o, [&](std::uint32_t address, int, int) { seen[address / 16] = false; });
  if (twice)
    fail(kBounds, where,
         "the descriptor of %s names places twice (%s:%u): start %#x, leading %u, stride %u, %s swizzle",
         name, base_name(where.file), where.line, d.start, d.leading, d.stride,
         rooftile::emulated::name(d.swizzle));
  for (const Load& l : u.loads)
    if (reads(r, o, l.to))
      fail(
          kMissing, where,
          "wgmma (%s:%u) reads %s from shared memory that the load of %s:%u has yet to write: no wait at its "
          "mbarrier",
          base_name(where.file), where.line, name, base_name(l.where.file), l.where.line);
  for (const Loaded& l : u.loaded)
    if (l.by_map && l.swizzle != d.swizzle && reads(r, o, l.range))
      fail(kBounds, where,
           "the descriptor of %s has %s swizzle (%s:%u), and the load that brought it %s one (%s:%u)", name,
           rooftile::emulated::name(d.swizzle), base_name(where.file), where.line,
           rooftile::emulated::name(l.swizzle), base_name(l.where.file), l.where.line);
  const Written* w = nullptr;
  for_each_piece(o, [&](std::uint32_t address, int, int) {
    if (!w) w = unfenced(u, block, address);
  });
  if (w)
    fail(
        kMissing, where,
        "no fence_proxy_async stands between thread %u's write to shared memory (%s%s:%u) and the wgmma that "
        "reads it (%s:%u)",
        w->writer->number, w->exact ? "" : "after ", base_name(w->where.file), w->where.line,
        base_name(where.file), where.line);
  return r;
}

/// The operand out of shared memory, and which mn have poison (as 0); false where all have: a row that nobody
/// wrote may be one that nobody will use.
template <class Bits, class Value, int kDepth, class Convert>
bool unpack(const AsyncUnits& u, const Block& block, const MatrixOperand& o, Value (*to)[kDepth],
            bool* poisoned, Convert convert) {
  constexpr Bits kPoison = static_cast<Bits>(~Bits{0});
  constexpr int kPiece = 16 / sizeof(Bits);
  std::array<bool, 256> poison{};
  for_each_piece(o, [&](std::uint32_t address, int mn, int k) {
    Bits piece[kPiece];
    std::memcpy(piece, block.arena + address, 16);
    bool any = false;
    for (const Bits element : piece) any |= element == kPoison;
    if (any) any = never_written(u, block, address, 16);
    for (int i = 0; i < kPiece; ++i) {
      const int row = o.mn_major ? mn + i : mn;
      const bool missing = any && piece[i] == kPoison;
      poison[static_cast<std::size_t>(row)] |= missing;
      to[row][o.mn_major ? k : k + i] = missing ? Value{0} : convert(piece[i]);
    }
  });
  bool all = true;
  for (int i = 0; i < o.extent; ++i) {
    all &= poison[static_cast<std::size_t>(i)];
    poisoned[i] |= poison[static_cast<std::size_t>(i)];
  }
  return !all;
}

bool unpack(const AsyncUnits& u, const Block& block, device::MatrixType type, const MatrixOperand& o,
            float (*to)[tensor_core::kDepth], std::int8_t (*to_bytes)[tensor_core::kDepth], bool* poisoned) {
  const auto number = [&](std::uint32_t bits) { return tensor_core::to_float(type, bits); };
  if (type == device::MatrixType::kI8)
    return unpack<std::uint8_t>(u, block, o, to_bytes, poisoned,
                                [](std::uint8_t bits) { return static_cast<std::int8_t>(bits); });
  if (o.element_bytes == 1) return unpack<std::uint8_t>(u, block, o, to, poisoned, number);
  if (o.element_bytes == 2) return unpack<std::uint16_t>(u, block, o, to, poisoned, number);
  return unpack<std::uint32_t>(u, block, o, to, poisoned, number);
}

bool run(AsyncUnits& u, const Block& block, Warpgroup& g, const WgmmaStep& s) {
  Accumulator& sums = g.accumulators[s.sums];
  const device::MatrixType type = s.product.type;
  if (!s.product.add) {
    std::fill(sums.sums.begin(), sums.sums.end(), 0.f);
    std::fill(sums.integers.begin(), sums.integers.end(), 0u);
    sums.poisoned_rows = {}, sums.poisoned_columns = {};
  }
  bool whole_a = true;
  if (s.product.a_registers) {
    for (unsigned t = 0; t < kWarpgroup; ++t)
      for (unsigned r = 0; r < 4; ++r) {
        const std::uint32_t pair = s.a_held[t * 4 + r];
        if (s.a_from[t][r] != pair) {
          report(*u.runner, FindingKind::kMissingWait, s.where,
                 "thread %u changed register %u of A before it waited for the wgmma that reads it (%s:%u)",
                 block.threads[0].number + t, r, base_name(s.where.file), s.where.line);
          return false;
        }
        const unsigned row = t / 32 * 16 + t % 32 / 4 + r % 2 * 8, k = t % 4 * 2 + r / 2 * 8;
        u.a[row][k] = tensor_core::to_float(type, pair & 0xffff);
        u.a[row][k + 1] = tensor_core::to_float(type, pair >> 16);
      }
  } else {
    whole_a = unpack(u, block, type, s.a, u.a, u.a_bytes, sums.poisoned_rows.data());
  }
  const bool whole_b = unpack(u, block, s.product.b_type, s.b, u.b, u.b_bytes, sums.poisoned_columns.data());
  if (!whole_a || !whole_b) {
    report(*u.runner, FindingKind::kUnwritten, s.where,
           "wgmma (%s:%u) reads %s from shared memory that nobody has written (start %#x): a wait at its "
           "mbarrier "
           "is missing, or has the wrong parity",
           base_name(s.where.file), s.where.line, whole_a ? "B" : "A",
           MatrixDescriptor(whole_a ? s.product.b : s.product.a).start);
    return false;
  }
  if (type == device::MatrixType::kI8)
    tensor_core::multiply(u.a_bytes, 64, u.b_bytes, s.product.n, sums.integers.data());
  else
    tensor_core::multiply(u.a, 64, u.b, s.product.n, sums.sums.data(), tensor_core::model(type));
  return true;
}

/// The thread's accumulators that its next wgmma adds to, made where it begins with them.
PendingSums& begin_sums(Warpgroup& g, const Product& p, std::size_t number, Site where) {
  ThreadUnits& own = own_units();
  const unsigned thread = current->number % kWarpgroup;
  const int count = p.n / 2;
  PendingSums* pending = nullptr;
  for (PendingSums& x : own.pending)
    if (p.sums < x.at + x.count && p.sums + count > x.at) {
      if (x.at != p.sums || x.count != count)
        fail(
            kMissing, where,
            "wgmma's accumulators (%s:%u) overlap those of one that was not waited for, and are not the same",
            base_name(where.file), where.line);
      pending = &x;
    }
  if ((!pending || p.a_registers) && !own.fenced)
    fail(kMissing, where,
         "no wgmma_fence stands between other instructions on registers and the wgmma that uses them (%s:%u)",
         base_name(where.file), where.line);
  if (pending) return *pending;
  const std::size_t accumulator = own.accumulators++;
  Accumulator& sums = g.accumulators[accumulator];
  const bool integers = p.type == device::MatrixType::kI8;
  if (sums.n == 0) {
    sums.n = p.n;
    if (integers)
      sums.integers.assign(64 * static_cast<std::size_t>(p.n), 0u);
    else
      sums.sums.assign(64 * static_cast<std::size_t>(p.n), 0.f);
  }
  for (int i = 0; i < count && p.add && sums.n == p.n; ++i) {
    const std::size_t at = row_of(thread, i) * static_cast<std::size_t>(p.n) + column_of(thread, i);
    const std::uint32_t bits = word_at(p.sums + i);
    if (integers) {  // each pattern is a number
      sums.integers[at] = bits;
      continue;
    }
    const bool poison = bits == kUnwrittenPoison;
    if (poison) sums.poisoned_rows[row_of(thread, i)] = true;
    sums.sums[at] = poison ? 0 : std::bit_cast<float>(bits);
  }
  own.pending.push_back({p.sums, count, accumulator, number});
  current->sums_pending = true;
  for (int i = 0; i < count; ++i) std::memmove(&p.sums[i], &kPendingPoison, sizeof kPendingPoison);
  return own.pending.back();
}

[[noreturn]] void refuse_changed(const Warpgroup& g, const PendingSums& p, int i, Site where) {
  const WgmmaStep* s = p.last_step >= g.first ? &g.steps[p.last_step - g.first] : nullptr;
  const Site made = s ? s->where : where;
  fail(kMissing, where,
       "thread %u changed accumulator %d before it waited for the wgmma that writes it (%s:%u, waited for at "
       "%s:%u)",
       current->number, i, base_name(made.file), made.line, base_name(where.file), where.line);
}
}  // namespace

const WgmmaStep* step_that_reads(const AsyncUnits& u, const Range& r, std::size_t* warpgroup) {
  const std::vector<Warpgroup>& all = u.blocks[r.block->rank].warpgroups;
  for (std::size_t w = 0; w < all.size(); ++w)
    for (const WgmmaStep& s : all[w].steps)
      if (reads(s, r)) {
        *warpgroup = w;
        return &s;
      }
  return nullptr;
}

void refuse_in_use(const Range& r, const char* who, Site where) {
  std::size_t w = 0;
  const WgmmaStep* s = step_that_reads(units(), r, &w);
  if (!s) return;
  fail(kMissing, where,
       "%s (%s:%u) into shared memory that a wgmma of warpgroup %zu (block %u of the cluster, %s:%u) has yet "
       "to "
       "read: %s",
       who, base_name(where.file), where.line, w, r.block->rank, base_name(s->where.file), s->where.line,
       s->committed == 0 ? "no wgmma_commit stands behind it"
       : poisoned(*r.block, *s, r)
           ? "nobody had written it when the wgmma was issued; no wait at its mbarrier, or the wrong parity"
           : "the slot was given back before the wait for the wgmma, or the wgmma was issued without a wait "
             "at its "
             "mbarrier");
}

bool wgmma_writes(const Thread& t, const void* at, std::size_t bytes, Site* made) {
  const auto* p = static_cast<const std::byte*>(at);
  const AsyncUnits& u = *t.block->runner->units;
  for (const PendingSums& s : u.threads[t.in_cluster].pending) {
    const auto* first = reinterpret_cast<const std::byte*>(s.at);
    if (p >= first + static_cast<std::size_t>(s.count) * sizeof(float) || p + bytes <= first) continue;
    const Warpgroup& g = u.blocks[t.block->rank].warpgroups[t.number / kWarpgroup];
    if (s.last_step >= g.first) *made = g.steps[s.last_step - g.first].where;
    return true;
  }
  return false;
}

bool run_tensor_cores(AsyncUnits& u) {
  for (std::size_t rank = 0; rank < u.blocks.size(); ++rank)
    for (std::size_t w = 0; w < u.blocks[rank].warpgroups.size(); ++w) {
      Warpgroup& g = u.blocks[rank].warpgroups[w];
      if (g.wanted <= g.first) continue;
      const std::size_t count = g.wanted - g.first;
      if (!std::all_of(g.steps.begin(), g.steps.begin() + static_cast<std::ptrdiff_t>(count),
                       [](const WgmmaStep& s) { return s.committed == kWarpgroup; }))
        continue;
      const Block& block = u.runner->blocks[rank];
      for (std::size_t i = 0; i < count; ++i) {
        if (!run(u, block, g, g.steps.front())) return false;
        g.steps.pop_front();
        ++g.first;
      }
      for (unsigned i = 0; i < kWarpgroup; ++i) {
        Thread& t = block.threads[w * kWarpgroup + i];
        if (t.wait != Wait::kWgmma || u.threads[t.in_cluster].waits_for > g.first) continue;
        t.wait = Wait::kNothing;
        u.runner->make_ready(t);
      }
      ++u.runner->progress;
      return true;
    }
  return false;
}

void describe_wgmma(const Thread& t, char* text, std::size_t capacity) {
  const AsyncUnits& u = *t.block->runner->units;
  const Warpgroup& g = u.blocks[t.block->rank].warpgroups[t.number / kWarpgroup];
  for (const WgmmaStep& s : g.steps)
    if (s.committed != kWarpgroup) {
      std::snprintf(text, capacity,
                    ": of its warpgroup, %u threads have issued the product of %s:%u, and %u committed it",
                    s.issued, base_name(s.where.file), s.where.line, s.committed);
      return;
    }
}

void refuse_poison(std::uint32_t bits, Site where) {
  if (bits == kPendingPoison || bits == kPendingUsed)
    fail(kMissing, where,
         "thread %u reads an accumulator that a wgmma has yet to write (%s:%u): no wgmma_wait",
         current->number, base_name(where.file), where.line);
  if (bits == kUnwrittenPoison)
    fail(static_cast<int>(FindingKind::kUnwritten), where,
         "thread %u uses a sum that a wgmma made of shared memory which nobody has written (%s:%u)",
         current->number, base_name(where.file), where.line);
}

namespace device {

void wgmma_fence() { own_units().fenced = true; }

void wgmma(const Product& p, Site where) {
  Thread& me = *current;
  ThreadUnits& own = own_units();
  me.where = where;
  Warpgroup& g = own_warpgroup(where);
  const unsigned thread = me.number % kWarpgroup;
  const std::size_t number = own.issued++;
  if (number == g.first + g.steps.size()) {
    WgmmaStep& s = g.steps.emplace_back();
    s.product = p, s.where = where;
    const int size = tensor_core::element_bytes(p.type);
    s.a = {p.a, p.a_mn_major, 64, size};
    s.b = {p.b, p.b_mn_major, p.n, size};
    if (!p.a_registers) s.a_bounds = check_operand("A", s.a, where);
    s.b_bounds = check_operand("B", s.b, where);
  }
  WgmmaStep& s = g.steps[number - g.first];
  const Product& q = s.product;
  if (p.type != q.type || p.b_type != q.b_type || p.a != q.a || p.b != q.b || p.n != q.n || p.add != q.add ||
      !p.a_registers != !q.a_registers || p.a_mn_major != q.a_mn_major || p.b_mn_major != q.b_mn_major)
    fail(kDivergent, where,
         "threads of a warpgroup issue different products: thread %u at %s:%u, and another at %s:%u "
         "(descriptors "
         "of B %#llx, %#llx)",
         me.number, base_name(where.file), where.line, base_name(s.where.file), s.where.line,
         static_cast<unsigned long long>(p.b), static_cast<unsigned long long>(q.b));
  ++s.issued;
  PendingSums& pending = begin_sums(g, p, number, where);
  pending.last_step = number;
  if (s.issued == 1) s.sums = pending.number;
  if (s.sums != pending.number)
    fail(kDivergent, where, "threads of a warpgroup add to different accumulators (%s:%u)",
         base_name(where.file), where.line);
  if (p.a_registers) {
    std::memcpy(&s.a_held[thread * 4], p.a_registers, 16);
    s.a_from[thread] = p.a_registers;
    for (int i = 0; i < 4; ++i) refuse_poison(p.a_registers[i], where);
  }
}

void wgmma_commit() {
  ThreadUnits& own = own_units();
  Warpgroup& g = own_warpgroup(current->where);
  for (; own.committed < own.issued; ++own.committed) ++g.steps[own.committed - g.first].committed;
  own.groups.push_back(own.committed);
  if (observer) observer->release(*current, &g);
}

void wgmma_wait(unsigned groups_left, Site where) {
  Thread& me = *current;
  ThreadUnits& own = own_units();
  own.fenced = false;
  if (groups_left == 0 && own.committed < own.issued)
    fail(kMissing, where,
         "%zu products of this thread are in no group that the wait could mean (%s:%u): no wgmma_commit",
         own.issued - own.committed, base_name(where.file), where.line);
  if (own.groups.size() <= groups_left) return;
  const std::size_t target = own.groups[own.groups.size() - groups_left - 1];
  own.groups.erase(own.groups.begin(), own.groups.end() - static_cast<std::ptrdiff_t>(groups_left));
  Warpgroup& g = own_warpgroup(where);
  own.waits_for = target;
  g.wanted = std::max(g.wanted, target);
  // No thread can have changed what is in flight without it showing here, before the sums come.
  for (const PendingSums& p : own.pending)
    for (int i = 0; i < p.count; ++i)
      if (word_at(p.at + i) != kPendingPoison) refuse_changed(g, p, i, where);
  if (g.first < target) wait(Wait::kWgmma, where);
  // A product is done when all four warps have issued it: whoever has waited for it knows what they did
  // before. PTX does not say so in words; kernels rely on it.
  if (observer) observer->acquire(me, &g);
  me.learnt = me.block->runner->progress;
  const unsigned thread = me.number % kWarpgroup;
  std::erase_if(own.pending, [&](const PendingSums& p) {
    if (p.last_step >= target) return false;
    const auto found = g.accumulators.find(p.number);
    Accumulator& sums = found->second;
    for (int i = 0; i < p.count; ++i) {
      const std::size_t row = row_of(thread, i), column = column_of(thread, i);
      const bool poison = sums.poisoned_rows[row] || sums.poisoned_columns[column];
      const std::size_t at = row * static_cast<std::size_t>(sums.n) + column;
      const std::uint32_t sum =
          sums.integers.empty() ? std::bit_cast<std::uint32_t>(sums.sums[at]) : sums.integers[at];
      const std::uint32_t bits = poison ? kUnwrittenPoison : sum;
      std::memmove(&p.at[i], &bits, sizeof bits);
    }
    if (++sums.returned == kWarpgroup) g.accumulators.erase(found);
    return true;
  });
  me.sums_pending = !own.pending.empty();
}

}  // namespace device
}  // namespace rooftile::emulated
