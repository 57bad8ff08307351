#include "rooftile/harness/bench/roofs.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>

#include "rooftile/harness/bench/cache_size.h"
#include "rooftile/harness/bench/fma_peak.h"
#include "rooftile/harness/bench/timing.h"

namespace rooftile::harness {
namespace {

constexpr std::size_t kKiB = 1024, kMiB = 1024 * kKiB;
constexpr std::size_t kMinFootprint = 4 * kKiB;
// Source and destination a whole power of two apart share DRAM banks and cache sets; half a page more was
// worth 5 to 10% of a copy in memory. In cache the gap would cost room.
constexpr std::size_t kGap = kMiB + 2 * kKiB;
constexpr std::size_t kGapFrom = 4 * kMiB;
constexpr std::size_t kFinalists = 6;
// A quick look at memory takes an eighth of the footprint at a time, the next one for each sample: before a
// part comes round again, more than the cache holds has been through it. 512 MiB as a whole cost 60 ms a
// sample, and a bench of one small shape waited half a minute for its first row.
constexpr std::size_t kParts = 8;
// A part smaller than this is copied faster by one thread than another thread wakes up.
constexpr std::size_t kBytesWorthAThread = 128 * kKiB;

std::size_t nearest_power(std::size_t bytes) {
  const std::size_t below = std::bit_floor(bytes);
  return static_cast<double>(bytes) > 1.4142135 * static_cast<double>(below) ? 2 * below : below;
}

std::string in_mib(std::size_t bytes) { return std::to_string(bytes / kMiB) + " MiB"; }

/// The third best of some rates.
double reached_thrice(const Samples& rates) {
  std::vector<double> values = rates.values();
  const std::size_t place = std::min<std::size_t>(2, values.size() - 1);
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(place), values.end(),
                   std::greater<>());
  return values[place];
}

}  // namespace

void run_split(const MemoryKernel& kernel, ThreadPool& pool, void* dst, const void* src, std::size_t bytes) {
  const auto parts = static_cast<std::size_t>(pool.threads());
  if (parts == 1) {
    kernel.run(dst, src, bytes);
    return;
  }
  // Parts end on pages where they are large: no two threads then meet in a page or a DRAM row.
  const std::size_t unit = bytes / parts >= 64 * kKiB ? 4096 : 64;
  const std::size_t part = (bytes + parts * unit - 1) / (parts * unit) * unit;
  pool.run([&](int thread) {
    const std::size_t from = std::min(bytes, static_cast<std::size_t>(thread) * part);
    const std::size_t size = std::min(part, bytes - from);
    kernel.run(static_cast<char*>(dst) + from, static_cast<const char*>(src) + from, size);
  });
}

Roofs::Roofs(Effort effort) : effort_(effort) {
  const std::size_t wanted = effort == Effort::kQuick ? 512 * kMiB : 2048 * kMiB;
  const std::size_t available = available_memory_bytes() / 2;
  max_footprint_ = std::min(wanted, std::max(kMiB, std::bit_floor(available)));
  if (max_footprint_ < wanted) {
    notes_.push_back("memory is short: footprints go up to " + in_mib(max_footprint_) + " instead of " +
                     in_mib(wanted));
  }
  const std::size_t outside = std::bit_ceil(8 * last_level_cache_bytes());
  memory_footprint_ = std::min(std::max(outside, 64 * kMiB), max_footprint_);
  if (memory_footprint_ < outside) {
    notes_.push_back("\"memory\" is measured at " + in_mib(memory_footprint_) +
                     ", less than 8 times the last-level cache of " + in_mib(last_level_cache_bytes()) +
                     ": it may hold some of it");
  }
}

ThreadPool& Roofs::pool(int threads) {
  std::unique_ptr<ThreadPool>& pool = pools_[threads];
  if (pool == nullptr) pool = std::make_unique<ThreadPool>(threads);
  return *pool;
}

bool Roofs::prepare(std::size_t footprint) {
  const std::size_t bytes = footprint + (footprint >= kGapFrom ? kGap : 0);
  if (arena_.bytes() >= bytes) return true;
  arena_ = MemoryBlock();  // first gives the old one back, so that both never exist together
  arena_ = MemoryBlock(bytes);
  if (arena_.data() == nullptr) return false;
  // Touched by the threads that will use it: on machines with several memories that places the pages.
  const MemoryKernel touch = {"touch", Traffic::kWrite, false, [](void* dst, const void*, std::size_t size) {
                                if (size > 0) std::memset(dst, kFill, size);
                              }};
  run_split(touch, pool(usable_cores()), arena_.data(), nullptr, bytes);
  return true;
}

/// GB/s of one timing of `rounds` passes over the arena's first `footprint` bytes, or over a part of them.
double Roofs::time_once(const MemoryKernel& kernel, std::size_t footprint, ThreadPool& pool, CacheState cache,
                        int rounds) {
  const auto parts = static_cast<std::size_t>(pool.threads());
  const bool copies = kernel.traffic == Traffic::kCopy;
  const std::size_t whole = copies ? footprint / 2 : footprint;
  const bool in_parts = effort_ == Effort::kQuick && footprint >= memory_footprint_ &&
                        footprint - footprint / kParts > last_level_cache_bytes();
  const std::size_t bytes = in_parts ? whole / kParts : whole;
  char* dst = arena_.data() + (in_parts ? next_part_++ % kParts * bytes : 0);
  const char* src = copies ? dst + whole + (footprint >= kGapFrom ? kGap : 0) : dst;
  const std::size_t part = std::max<std::size_t>(bytes / parts / 64 * 64, 64);
  int passes = 1;
  const std::function<void(int)> body = [&](int thread) {
    const std::size_t from = std::min(bytes, static_cast<std::size_t>(thread) * part);
    const std::size_t size = thread + 1 == pool.threads() ? bytes - from : std::min(part, bytes - from);
    for (int i = 0; i < passes; ++i) kernel.run(dst + from, src + from, size);
  };
  if (cache == CacheState::kCold) {
    flush_range(dst, bytes);
    flush_range(src, bytes);
  } else if (footprint < 2 * last_level_cache_bytes()) {
    pool.run(body);  // its own pass first: a rival's streaming stores have thrown the lines out
  }
  passes = rounds;
  const double seconds = std::max(pool.time(body) - clock_floor_ns() * 1e-9, 1e-9);
  return static_cast<double>(moved_bytes(kernel.traffic, bytes)) * rounds / seconds * 1e-9;
}

/// Every kernel once or a few times; then the fastest few, in turn, until their rates can be trusted.
Roof Roofs::contest(Traffic traffic, std::size_t footprint, int threads, CacheState cache) {
  Roof roof;
  roof.footprint_bytes = footprint;
  roof.threads = threads;
  if (!prepare(footprint)) {
    notes_.push_back("the system refused " + in_mib(footprint) + " of memory: nothing measured at that size");
    roof.kernel = memory_kernels(traffic)[0];
    return roof;
  }
  std::vector<MemoryKernel> rivals;
  // Deep in memory the order no longer changes with the footprint; a contest of all would cost a second.
  if (cache == CacheState::kWarm && footprint > memory_footprint_) {
    rivals = this->roof(traffic, memory_footprint_, threads).finalists;
    if (!prepare(footprint)) rivals.clear();
  }
  if (rivals.empty()) {
    const auto all = memory_kernels(traffic);
    rivals.assign(all.begin(), all.end());
  }
  ThreadPool& team = pool(threads);
  const bool quick = effort_ == Effort::kQuick;
  // About 30 us (quick) of work a sample at 250 GB/s, against a barrier's 0.2 us.
  const std::size_t span = (quick ? 8 : 32) * kMiB;
  const int rounds =
      cache == CacheState::kCold ? 1 : static_cast<int>(std::max<std::size_t>(1, span / footprint));

  std::vector<std::pair<double, std::size_t>> first;
  for (std::size_t i = 0; i < rivals.size(); ++i) {
    double gbs = time_once(rivals[i], footprint, team, cache, rounds);
    // Deep in memory once must do: a pass takes milliseconds, and the finals look again.
    if (footprint < 2 * last_level_cache_bytes()) {
      for (int more = 0; more < 2; ++more) {
        gbs = std::max(gbs, time_once(rivals[i], footprint, team, cache, rounds));
      }
    }
    first.emplace_back(gbs, i);
    roof.best_gbs = std::max(roof.best_gbs, first.back().first);
  }
  std::sort(first.begin(), first.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  first.resize(std::min(first.size(), kFinalists));

  // The finals go on until each has reached its best rate thrice, or for this long: a neighbour on one of the
  // cores spoils most samples, memory's rate wanders by a tenth anyway.
  const int enough = quick ? 5 : 21;
  const std::int64_t deadline = now_ns() + (quick ? 150'000'000 : 1'000'000'000);
  std::vector<Samples> finals(first.size());
  for (int round = 1;; ++round) {
    bool settled = true;
    for (std::size_t i = 0; i < first.size(); ++i) {
      finals[i].add(time_once(rivals[first[i].second], footprint, team, cache, rounds));
      settled = settled && reached_thrice(finals[i]) > 0.98 * finals[i].max();
    }
    if (round >= 5 && (now_ns() > deadline || (settled && round >= enough))) break;
  }
  std::size_t winner = 0;
  for (std::size_t i = 0; i < first.size(); ++i) {
    roof.finalists.push_back(rivals[first[i].second]);
    roof.best_gbs = std::max(roof.best_gbs, finals[i].max());
    if (reached_thrice(finals[i]) > reached_thrice(finals[winner])) winner = i;
  }
  roof.kernel = roof.finalists[winner];
  roof.gbs = reached_thrice(finals[winner]);
  return roof;
}

const Roof& Roofs::roof(Traffic traffic, std::size_t footprint_bytes, int threads, CacheState cache) {
  const std::size_t footprint = nearest_power(std::clamp(footprint_bytes, kMinFootprint, max_footprint_));
  return roof_at(traffic, footprint, std::max(threads, 1), cache);
}

const Roof& Roofs::roof_at(Traffic traffic, std::size_t footprint, int threads, CacheState cache) {
  const auto key = std::make_tuple(traffic, footprint, threads, cache);
  if (const auto found = roofs_.find(key); found != roofs_.end()) return found->second;
  Roof roof = contest(traffic, footprint, threads, cache);
  return roofs_.emplace(key, std::move(roof)).first->second;
}

double Roofs::best_rate(std::size_t footprint_bytes, int threads) {
  const std::size_t bytes = std::clamp(footprint_bytes, kMinFootprint, max_footprint_);
  double best = 0;
  for (const Traffic traffic : {Traffic::kRead, Traffic::kWrite, Traffic::kCopy}) {
    best = std::max(best, roof(traffic, std::bit_floor(bytes), threads).best_gbs);
    best = std::max(best, roof(traffic, std::min(std::bit_ceil(bytes), max_footprint_), threads).best_gbs);
  }
  return best;
}

void Roofs::copy(void* dst, const void* src, std::size_t bytes, int threads, CacheState cache) {
  const auto worth = static_cast<int>(std::min<std::size_t>(2 * bytes / kBytesWorthAThread, 1 << 20));
  const int used = std::clamp(worth, 1, std::max(threads, 1));
  run_split(roof(Traffic::kCopy, 2 * bytes, used, cache).kernel, pool(used), dst, src, bytes);
}

bool Roofs::too_fast(double bytes, double seconds, std::size_t footprint_bytes, int threads) {
  constexpr double kSlack = 0.9;
  const std::size_t footprint = std::clamp(footprint_bytes, kMinFootprint, max_footprint_);
  const double gbs = bytes / std::max(seconds, 1e-12) * 1e-9;
  // What a larger footprint allows, a smaller one allows as well: mostly there is nothing new to measure.
  for (const auto& [key, roof] : roofs_) {
    const bool bounds = roof.footprint_bytes >= footprint && roof.threads == std::max(threads, 1) &&
                        std::get<CacheState>(key) == CacheState::kWarm;
    if (bounds && gbs * kSlack <= roof.best_gbs) return false;
  }
  for (int attempt = 0; attempt < 4; ++attempt) {
    if (gbs * kSlack <= best_rate(footprint, threads)) return false;
    if (attempt == 3) break;
    for (const Traffic traffic : {Traffic::kRead, Traffic::kWrite, Traffic::kCopy}) {
      for (const std::size_t size :
           {std::bit_floor(footprint), std::min(std::bit_ceil(footprint), max_footprint_)}) {
        Roof& known = roofs_.at({traffic, size, std::max(threads, 1), CacheState::kWarm});
        const Roof again = contest(traffic, size, known.threads, CacheState::kWarm);
        known.best_gbs = std::max(known.best_gbs, again.best_gbs);
      }
    }
  }
  return true;
}

const PeakRate& Roofs::peak(std::size_t index, int threads, bool again) {
  const auto key = std::make_pair(index, std::max(threads, 1));
  const auto found = peaks_.find(key);
  if (found != peaks_.end() && !again) return found->second;
  const PeakLoop& loop = peak_loops()[index];
  const double hoped = key.second > 1 ? 0.97 * key.second * peak(index, 1).gflops : 0;
  ThreadPool& team = pool(key.second);
  const bool quick = effort_ == Effort::kQuick;
  // Rounds for 0.1 ms a sample: against a barrier's 0.2 us, and below a scheduler's slice.
  std::int64_t rounds = 1000;
  while (rounds < (std::int64_t{1} << 40)) {
    if (team.time([&](int) { loop.run(rounds); }) > 0.0001) break;
    rounds *= 2;
  }
  // Best of, since a peak is a bound: preemption and neighbours only ever take away from it. Several threads
  // that fall short of as many times one are given longer, in case a neighbour held a core for a while.
  const double flops = loop.flops_per_round * static_cast<double>(rounds) * key.second;
  const int enough = quick ? 50 : 300;
  double best = 0;
  for (int i = 0; i < enough || (best < hoped && i < 5 * enough); ++i) {
    const double seconds = team.time([&](int) { loop.run(rounds); });
    best = std::max(best, flops / std::max(seconds, 1e-9) * 1e-9);
  }
  PeakRate& rate = peaks_[key];
  best = std::max(best, rate.gflops);
  rate = {loop.name, loop.dtype, loop.isa, key.second, best};
  return rate;
}

double Roofs::fma_peak(std::string_view dtype, int threads) {
  const std::string_view arithmetic = dtype == "f64" ? "f64" : "f32";
  double best = 0;
  for (std::size_t i = 0; i < peak_loops().size(); ++i) {
    const PeakLoop& loop = peak_loops()[i];
    if (loop.dtype != arithmetic || std::string_view(loop.name) == "fma+add") continue;
    best = std::max(best, peak(i, threads).gflops);
  }
  return best;
}

double Roofs::flops_limit(std::string_view dtype, int threads) { return limit(dtype, threads, false); }

double Roofs::limit(std::string_view dtype, int threads, bool again) {
#if !defined(__x86_64__)
  return std::numeric_limits<double>::infinity();
#endif
  const std::string_view arithmetic = dtype == "f64" ? "f64" : "f32";
  double best = 0;
  for (std::size_t i = 0; i < peak_loops().size(); ++i) {
    const std::string_view loop = peak_loops()[i].dtype;
    if (loop == arithmetic || loop == dtype) best = std::max(best, peak(i, threads, again).gflops);
  }
  return best;
}

bool Roofs::too_many_flops(double flops, double seconds, std::string_view dtype, int threads) {
  const double gflops = flops / std::max(seconds, 1e-12) * 1e-9;
  for (int attempt = 0; attempt < 4; ++attempt) {
    if (gflops <= limit(dtype, threads, attempt > 0)) return false;
  }
  return true;
}

std::vector<LevelRate> Roofs::levels(const std::vector<Cache>& caches) {
  std::vector<int> counts = {1};
  if (usable_cores() > 1) counts.push_back(usable_cores());
  std::vector<LevelRate> rates;
  const auto add = [&](const std::string& name, std::size_t footprint, int threads) {
    const Roof& read = roof_at(Traffic::kRead, footprint, threads, CacheState::kWarm);
    const Roof& write = roof_at(Traffic::kWrite, footprint, threads, CacheState::kWarm);
    const Roof& copy = roof_at(Traffic::kCopy, footprint, threads, CacheState::kWarm);
    rates.push_back({name, footprint, threads, read.gbs, write.gbs, copy.gbs, read.kernel.name,
                     write.kernel.name, copy.kernel.name});
  };
  std::size_t inner = 0;  // one thread's share of the level before
  for (const Cache& cache : caches) {
    if (cache.kind == "instruction") continue;
    for (const int threads : counts) {
      // Half of it: what else the thread touches, and random replacement, take their part.
      const auto instances = static_cast<std::size_t>((threads + cache.shared_by - 1) / cache.shared_by);
      std::size_t footprint = std::bit_floor(cache.usable_bytes() / 2) * instances;
      const std::size_t all_inner = inner * static_cast<std::size_t>(threads);
      // Well outside the inner caches, even if neighbours leave little of this one.
      if (footprint < 2 * all_inner) footprint = std::min(2 * all_inner, cache.bytes * instances / 2);
      if (footprint > memory_footprint_ / 2 || footprint < kMinFootprint) continue;
      add("L" + std::to_string(cache.level), footprint, threads);
    }
    inner = cache.usable_bytes();
  }
  for (const int threads : counts) add("memory", memory_footprint_, threads);
  return rates;
}

void Roofs::measure(Machine& machine) {
  measure_cache_sizes(machine.caches);
  machine.levels = levels(machine.caches);
  machine.peaks.clear();
  for (std::size_t i = 0; i < peak_loops().size(); ++i) {
    machine.peaks.push_back(peak(i, 1));
    if (usable_cores() > 1) machine.peaks.push_back(peak(i, usable_cores()));
  }
}

Roofs& shared_roofs() {
  static Roofs roofs;
  return roofs;
}

void best_copy(void* dst, const void* src, std::size_t bytes, int threads, CacheState cache) {
  shared_roofs().copy(dst, src, bytes, threads, cache);
}

}  // namespace rooftile::harness
