#pragma once
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "rooftile/harness/bench/machine.h"
#include "rooftile/harness/bench/memory_block.h"
#include "rooftile/harness/bench/memory_kernels.h"
#include "rooftile/harness/bench/thread_pool.h"

namespace rooftile::harness {

enum class Effort { kQuick, kFull };
enum class CacheState { kWarm, kCold };

/// The fastest way found to move memory at one footprint with some threads. Rates in 10^9 bytes a second; the
/// footprint is all bytes touched, so a copy's half is its source.
struct Roof {
  MemoryKernel kernel{};
  std::size_t footprint_bytes = 0;
  int threads = 1;
  double gbs = 0;                       ///< what the kernel reached at least three times
  double best_gbs = 0;                  ///< the best single time of any kernel: what was reached once
  std::vector<MemoryKernel> finalists;  ///< the fastest few, for larger footprints
};

/// What this machine reaches, measured when first asked and remembered. Virtual machines and turbo clocks
/// vary from second to second: bounds that refuse a time use the best ever seen, figures to compare use
/// medians. One caller at a time.
class Roofs {
 public:
  explicit Roofs(Effort effort = Effort::kQuick);

  /// The fastest kernel at the power of two nearest to the footprint (4 KiB to max_footprint()).
  const Roof& roof(Traffic traffic, std::size_t footprint_bytes, int threads, CacheState = CacheState::kWarm);

  /// GB/s that no kernel exceeds at this footprint, thread count and warm caches: the best time ever of read,
  /// write and copy at the powers of two around it.
  double best_rate(std::size_t footprint_bytes, int threads);

  /// GFLOP/s of the fastest fused multiply-add loop for this dtype ("f16" and "bf16" count as f32).
  double fma_peak(std::string_view dtype, int threads);

  /// GFLOP/s that no kernel exceeds: also separate adders and bf16 instructions busy. Infinite where the
  /// machine's loops are not assembly, since then nothing can be called impossible.
  double flops_limit(std::string_view dtype, int threads);

  /// Whether `bytes` in `seconds` is faster than this machine can be: below 0.9 of what best_rate() allows.
  /// Before it says yes it measures again, up to three times, in case a busy neighbour had spoiled the rate.
  bool too_fast(double bytes, double seconds, std::size_t footprint_bytes, int threads);

  /// As too_fast, for arithmetic: whether the time is below flops / flops_limit().
  bool too_many_flops(double flops, double seconds, std::string_view dtype, int threads);

  /// Copies with the fastest kernel for these bytes. Uses fewer threads than allowed where starting them
  /// would cost more than they bring (below 128 KiB moved each).
  void copy(void* dst, const void* src, std::size_t bytes, int threads, CacheState = CacheState::kWarm);

  /// Fills caches' effective sizes, levels and peaks, for one thread and for all usable ones.
  void measure(Machine& machine);

  /// Gives the measured memory back; the next measurement takes it again.
  void release_memory() { arena_ = MemoryBlock(); }

  std::size_t max_footprint() const { return max_footprint_; }
  std::size_t memory_footprint() const { return memory_footprint_; }  ///< where "memory" is measured
  const std::vector<std::string>& notes() const { return notes_; }    ///< where it fell short, in sentences

 private:
  const Roof& roof_at(Traffic traffic, std::size_t footprint, int threads, CacheState cache);
  Roof contest(Traffic traffic, std::size_t footprint, int threads, CacheState cache);
  double time_once(const MemoryKernel& kernel, std::size_t footprint, ThreadPool& pool, CacheState cache,
                   int rounds);
  bool prepare(std::size_t footprint);
  const PeakRate& peak(std::size_t loop, int threads, bool again = false);
  double limit(std::string_view dtype, int threads, bool again);
  std::vector<LevelRate> levels(const std::vector<Cache>& caches);
  ThreadPool& pool(int threads);

  std::size_t next_part_ = 0;  // of memory, where a sample takes one part of it
  Effort effort_;
  std::size_t max_footprint_ = 0;
  std::size_t memory_footprint_ = 0;
  MemoryBlock arena_;
  std::map<int, std::unique_ptr<ThreadPool>> pools_;
  std::map<std::tuple<Traffic, std::size_t, int, CacheState>, Roof> roofs_;
  std::map<std::pair<std::size_t, int>, PeakRate> peaks_;
  std::vector<std::string> notes_;
};

/// Runs a kernel over the range, split into as many parts as the pool has threads.
void run_split(const MemoryKernel& kernel, ThreadPool& pool, void* dst, const void* src, std::size_t bytes);

/// The roofs that all of the process shares, with quick effort.
Roofs& shared_roofs();

/// The best copy that this machine can do: the yardstick for every memory-bound kernel.
void best_copy(void* dst, const void* src, std::size_t bytes, int threads, CacheState = CacheState::kWarm);

}  // namespace rooftile::harness
