#include "rooftile/backend/emulated/checked/tracer.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <string>
#include <tuple>

#include "rooftile/backend/emulated/checked/symbols.h"

namespace rooftile::emulated {
namespace {
constexpr std::size_t kSector = 32, kBanks = 32;

/// Whether neighbours (of two, or of two next but one) name the same place: the hardware then takes two
/// groups of lanes in one. Measured on an H100: 8-byte loads by all lanes of one place, or of two in turn,
/// take 1 pass, of eight 2.
bool neighbours_agree(const std::vector<std::uintptr_t>& by_lane, unsigned lanes) {
  const auto agree = [&](unsigned distance) {
    for (unsigned lane = 0; lane < kWarpSize; ++lane)
      if ((lanes >> lane & 1) != 0 && (lanes >> (lane ^ distance) & 1) != 0 &&
          by_lane[lane] != by_lane[lane ^ distance])
        return false;
    return true;
  };
  return agree(1) || agree(2);
}

/// Passes over the banks: each gives one word of 4 bytes in a pass, to any number of lanes. Accesses of 8
/// bytes go by half a warp, of 16 bytes by a quarter. `least`: were the words spread evenly over the banks.
std::uint64_t wavefronts_of(const std::vector<std::uintptr_t>& by_lane, unsigned lanes, std::size_t bytes,
                            std::uint64_t& least) {
  std::size_t group = bytes <= 4 ? 32 : bytes <= 8 ? 16 : 8;
  if (bytes > 4 && neighbours_agree(by_lane, lanes)) group *= 2;
  std::uint64_t passes = 0;
  least = 0;
  for (std::size_t first = 0; first < kWarpSize; first += group) {
    std::vector<std::uintptr_t> words;
    for (std::size_t lane = first; lane < first + group; ++lane)
      if (lanes >> lane & 1)
        for (std::uintptr_t w = by_lane[lane] / 4; w <= (by_lane[lane] + bytes - 1) / 4; ++w)
          words.push_back(w);
    std::sort(words.begin(), words.end());
    words.erase(std::unique(words.begin(), words.end()), words.end());
    std::array<std::uint64_t, kBanks> in_bank{};
    for (const std::uintptr_t w : words) ++in_bank[w % kBanks];
    passes += *std::max_element(in_bank.begin(), in_bank.end());
    least += (words.size() + kBanks - 1) / kBanks;
  }
  return passes;
}

TraceKind kind_of(int kind, bool shared) {
  return kind == 2   ? TraceKind::kAtomic
         : shared    ? (kind == 1 ? TraceKind::kSharedStore : TraceKind::kSharedLoad)
         : kind == 1 ? TraceKind::kGlobalStore
                     : TraceKind::kGlobalLoad;
}
}  // namespace

void Tracer::start() {
  counts_.clear();
  vectors_.clear();
  vector_of_.clear();
  touched_.clear();
  totals_ = {};
  on_ = true;
}

void Tracer::begin_cluster(const ClusterRunner& runner) {
  if (!on_) return;
  open_.assign((runner.threads.size() + kWarpSize - 1) / kWarpSize + runner.blocks.size(), {});
  visitors_.assign(runner.threads.size(), {});
  by_block_.assign(runner.blocks.size(), 0);
}
void Tracer::end_cluster() {
  for (const auto& warp : open_)
    for (const auto& [key, request] : warp) close(key.pc, request);
  open_.clear();
  visitors_.clear();
  for (const std::uint64_t n : by_block_) ++blocks_, accesses_ += n, most_ = std::max(most_, n);
  by_block_.clear();
}
void Tracer::end_launch() {
  constexpr std::uint64_t kLeastBlocks = 4;  // of two or three, one may well have most of the work
  if (!on_ || blocks_ < kLeastBlocks || accesses_ == 0) return;
  totals_.busiest_block =
      std::max(totals_.busiest_block, static_cast<double>(most_) / static_cast<double>(accesses_));
}

void Tracer::record(const Thread& t, std::uintptr_t at, std::size_t bytes, int kind, bool shared,
                    const void* pc) {
  if (visitors_.size() <= t.in_cluster) return;  // started in the middle of a kernel
  if (!shared) ++by_block_[t.block->rank];
  Visitor& visitor = visitors_[t.in_cluster];
  record_part(t, visitor, at, bytes, kind, shared, pc);
  if (kind != 2) find_vector(t, visitor, at, bytes, kind, shared, pc);
}

void Tracer::record_part(const Thread& t, Visitor& visitor, std::uintptr_t at, std::size_t bytes, int kind,
                         bool shared, const void* pc) {
  const Key key{pc, visitor.visits[pc]++};
  const std::size_t warps = (t.block->runner->launch->threads_per_block + kWarpSize - 1) / kWarpSize;
  auto& warp = open_[t.block->rank * warps + t.number / kWarpSize];
  Request& request = warp[key];
  request.lanes |= 1u << t.lane;
  request.shared = shared;
  request.kind = static_cast<std::uint8_t>(kind);
  request.bytes = static_cast<std::uint16_t>(bytes);
  request.at[t.lane] = at;
  if (request.lanes == ~0u) {
    close(pc, request);
    warp.erase(key);
  }
}

/// Four members of 1, 2 or 4 bytes, or two of 8: each at the next place, by instructions of their own.
/// Whether they are of one line is known when the trace ends.
void Tracer::find_vector(const Thread& t, Visitor& visitor, std::uintptr_t at, std::size_t bytes, int kind,
                         bool shared, const void* pc) {
  if (bytes > 8 || (bytes & (bytes - 1)) != 0) return;
  const unsigned members = bytes == 8 ? 2 : 4;
  if (at % (members * bytes) == 0) {
    visitor.begun[visitor.next++ % visitor.begun.size()] = {at, bytes, 1, kind, {pc}};
    return;
  }
  for (Begun& b : visitor.begun) {
    if (b.members == 0 || b.at + b.members * bytes != at || b.bytes != bytes || b.kind != kind) continue;
    const auto end = b.pcs.begin() + b.members;
    if (std::find(b.pcs.begin(), end, pc) != end) continue;  // a loop's next step
    b.pcs[b.members++] = pc;
    if (b.members < members) return;
    std::unique_ptr<Vector>& vector = vectors_[{b.pcs, kind_of(kind, shared)}];
    if (!vector) {
      vector = std::make_unique<Vector>(Vector{b.pcs, {}});
      vector_of_[vector.get()] = vector.get();
    }
    record_part(t, visitor, b.at, members * bytes, kind, shared, vector.get());
    b.members = 0;
    return;
  }
}

void Tracer::close(const void* key, const Request& r) {
  const TraceKind kind = kind_of(r.kind, r.shared);
  if (const auto vector = vector_of_.find(key); vector != vector_of_.end())
    return count(vector->second->line, r);
  TraceLine& line = counts_[{key, kind}];
  line.kind = kind;
  count(line, r);
  if (r.shared) return;
  for (unsigned rest = r.lanes; rest != 0; rest &= rest - 1) {
    const std::uintptr_t at = r.at[static_cast<std::size_t>(std::countr_zero(rest))];
    touch(at, at + r.bytes, r.kind != 1, r.kind != 0);
  }
}

void Tracer::count(TraceLine& line, const Request& r) {
  line.access_bytes = std::max<int>(line.access_bytes, r.bytes);
  ++line.requests;
  const auto lanes = static_cast<std::uint64_t>(std::popcount(r.lanes));
  line.lanes += lanes;
  line.bytes += lanes * r.bytes;
  std::vector<std::uintptr_t> used, sectors;
  for (unsigned rest = r.lanes; rest != 0; rest &= rest - 1)
    used.push_back(r.at[static_cast<std::size_t>(std::countr_zero(rest))]);
  if (r.shared) {
    std::uint64_t least = 0;
    const std::uint64_t passes = wavefronts_of({r.at.begin(), r.at.end()}, r.lanes, r.bytes, least);
    line.wavefronts += passes;
    line.conflicts += passes - least;
  }
  std::sort(used.begin(), used.end());
  std::uintptr_t end = 0;
  for (const std::uintptr_t at : used) {
    const std::uintptr_t from = std::max(at, end);
    end = std::max(end, at + r.bytes);
    if (from >= end) continue;
    line.used_bytes += end - from;
    for (std::uintptr_t s = from / kSector; s <= (end - 1) / kSector; ++s) sectors.push_back(s);
  }
  sectors.erase(std::unique(sectors.begin(), sectors.end()), sectors.end());
  if (!r.shared) line.sectors += sectors.size();
}

void Tracer::touch(std::uintptr_t from, std::uintptr_t end, bool reads, bool writes) {
  while (from < end) {
    const std::uintptr_t sector = from / kSector, stop = std::min(end, (sector + 1) * kSector);
    const auto bytes = static_cast<std::uint32_t>((std::uint64_t{1} << (stop - from)) - 1) << from % kSector;
    Touched& touched = touched_[sector];
    if (reads) touched.read |= bytes;
    if (writes) touched.written |= bytes;
    from = stop;
  }
}

/// One access takes its members' place where a line makes each of them, and makes none but as part of it.
void Tracer::merge_vectors(const std::map<const void*, Place>& places) {
  for (const auto& entry : vectors_) {  // clang's lambdas take no parts of it by name
    const TraceKind kind = entry.first.second;
    const auto& vector = entry.second;
    const auto first = places.find(vector->pcs[0]);
    const auto is_part = [&](const void* pc) {
      if (!pc) return true;
      const auto counted = counts_.find({pc, kind});
      const auto place = places.find(pc);
      return counted != counts_.end() && counted->second.lanes == vector->line.lanes &&
             place != places.end() && place->second.line != 0 && place->second.line == first->second.line &&
             std::strcmp(place->second.file, first->second.file) == 0;
    };
    if (!std::all_of(vector->pcs.begin(), vector->pcs.end(), is_part)) continue;
    for (const void* pc : vector->pcs)
      if (pc) counts_.erase({pc, kind});
    vector->line.kind = kind;
    counts_[{vector->pcs[0], kind}] = vector->line;
  }
}

std::vector<TraceLine> Tracer::stop(TraceTotals* totals) {
  on_ = false;
  for (const auto& [sector, touched] : touched_) {
    totals_.read_bytes += static_cast<std::uint64_t>(std::popcount(touched.read));
    totals_.written_bytes += static_cast<std::uint64_t>(std::popcount(touched.written));
    totals_.different_bytes += static_cast<std::uint64_t>(std::popcount(touched.read | touched.written));
  }
  touched_.clear();
  std::vector<const void*> pcs;
  for (const auto& [key, line] : counts_) pcs.push_back(key.first);
  const auto places = find_places(pcs, true);
  merge_vectors(places);
  for (const auto& [key, line] : counts_) totals_.sectors += line.sectors;
  if (totals) *totals = totals_;
  std::map<std::tuple<std::string, int, TraceKind>, TraceLine> merged;
  for (const auto& [key, line] : counts_) {
    const auto found = places.find(key.first);
    const Place place = found != places.end() ? found->second : Place{};
    TraceLine& sum = merged[{place.file, place.line, key.second}];
    std::memcpy(sum.file, place.file, sizeof sum.file);
    sum.line = place.line;
    sum.kind = key.second;
    sum.access_bytes = std::max(sum.access_bytes, line.access_bytes);
    sum.requests += line.requests;
    sum.lanes += line.lanes;
    sum.bytes += line.bytes;
    sum.used_bytes += line.used_bytes;
    sum.sectors += line.sectors;
    sum.wavefronts += line.wavefronts;
    sum.conflicts += line.conflicts;
  }
  counts_.clear();
  vectors_.clear();
  vector_of_.clear();
  std::vector<TraceLine> lines;
  for (const auto& [key, line] : merged) lines.push_back(line);
  return lines;
}

}  // namespace rooftile::emulated
