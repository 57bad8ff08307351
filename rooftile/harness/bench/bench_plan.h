#pragma once
// Which rows a bench measures, in the order of what a reader misses most.
#include <string>
#include <vector>

#include "rooftile/harness/bench/bench.h"
#include "rooftile/harness/bench/roofs.h"

namespace rooftile::harness {

/// One row of the record to be measured.
struct BenchRow {
  const Spec* spec = nullptr;
  Case c;
  std::string variant;  ///< empty: what the library chooses
  std::string isa;
  int threads = 1;
  CacheState cache = CacheState::kWarm;
  bool in_memory = false;  ///< too large for any cache: "cold" without a flush before each sample
  std::string group;       ///< "best", "ladder", "sweep" or "full"
  int rung = 0;            ///< in a ladder, from 1
  bool baselines = false;
  std::string series = {};  ///< in a sweep: which line of a plot
};

/// Where a series of sizes begins and ends, in bytes that a call moves.
struct SeriesRange {
  double least, most;
};

struct PlanOptions {
  std::size_t last_level_bytes = 0;  ///< memory rows move at least 8 times as much
  int all_threads = 1;
  std::vector<std::string> isas;  ///< the best first
  SeriesRange series = {4096, 1073741824};
};

/// The sentence where nothing is to be measured.
inline constexpr const char* kNoCase =
    "no case fits these options; `rooftile list` shows functions, dtypes and variants";

/// Throws std::invalid_argument with a sentence where an option names nothing.
std::vector<BenchRow> plan_rows(const BenchOptions& options, const PlanOptions& machine,
                                const std::vector<Spec>& specs);

/// The case with its first dimension such that it moves at least `bytes`, by as little as its rows allow.
Case scale_memory(const Spec& spec, Case c, double bytes);

/// The dtypes that a plot shows: those asked for that the op takes; else those of its bench, and of
/// Scope::full all.
std::vector<DType> series_dtypes(const Spec& spec, const BenchOptions& options);

/// Speed against size: the op's own sweep in that dtype; else its first case, its first dimension scaled so
/// that each case moves about twice the last one's bytes.
std::vector<Case> series_cases(const Spec& spec, DType dtype, const SeriesRange& range);

/// `like` in another shape and dtype; throws std::invalid_argument where the shape has too few sizes.
Case shaped(const Spec& spec, const Case& like, const Shape& shape, DType dtype);

/// A line's name in a plot: "rooftile", "rooftile tile", "rooftile tile, avx2".
std::string series_name(const std::string& variant, const std::string& isa);

/// "softmax tile f32 64x1024, 2 threads, warm".
std::string describe(const BenchRow& row);

}  // namespace rooftile::harness
