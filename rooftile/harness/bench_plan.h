#pragma once
// Which rows a bench measures, in the order of what a reader misses most.
#include <string>
#include <vector>

#include "rooftile/harness/bench.h"
#include "rooftile/harness/roofs.h"

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
};

struct PlanOptions {
  std::size_t last_level_bytes = 0;  ///< memory rows move at least 8 times as much
  int all_threads = 1;
  std::vector<std::string> isas;  ///< the best first
};

/// The sentence where nothing is to be measured.
inline constexpr const char* kNoCase =
    "no case fits these options; `rooftile list` shows functions, dtypes and variants";

/// Throws std::invalid_argument with a sentence where an option names nothing.
std::vector<BenchRow> plan_rows(const BenchOptions& options, const PlanOptions& machine,
                                const std::vector<Spec>& specs);

/// The case with its first dimension such that it moves at least `bytes`, by as little as its rows allow.
Case scale_memory(const Spec& spec, Case c, double bytes);

/// "softmax tile f32 64x1024, 2 threads, warm".
std::string describe(const BenchRow& row);

}  // namespace rooftile::harness
