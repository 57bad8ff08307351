#pragma once
// Measures rows: operands, copy, baselines and kernel in one race; what is believed becomes a line of the
// record.
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "rooftile/harness/bench/baselines.h"
#include "rooftile/harness/bench/bench_data.h"
#include "rooftile/harness/bench/bench_plan.h"
#include "rooftile/harness/bench/bench_race.h"

namespace rooftile::harness {

/// What became of a row: a result, a sentence, or nothing since it was cancelled.
struct Outcome {
  std::optional<nlohmann::json> result;
  std::string error;    ///< the row failed or cannot be believed
  std::string refused;  ///< the variant does not take this case
  bool cancelled = false;
};

/// Keeps what rows share: queues, the roofs, the copy's memory, the last case's operands, the baselines.
class BenchSession {
 public:
  /// `baselines` may be null. `machine` must have been measured: its caches name the limits.
  BenchSession(Roofs& roofs, const Machine& machine, Baselines* baselines);

  /// `seconds`: for the race; preparing comes on top.
  Outcome measure(const BenchRow& row, double seconds, int most_samples,
                  const std::atomic<bool>* cancel = nullptr);

  /// The queue of that ISA and thread count; throws std::runtime_error with its sentence where there is none.
  const Queue& queue(const std::string& isa, int threads);

  /// Gives the operands and the copy's memory back.
  void release_memory();

 private:
  struct Limit {
    double us;
    std::string name;
  };
  Limit limit_of(const BenchRow& row, const BenchData& data, double bytes, double least_bytes, double flops,
                 double copy_us);
  Contender copy_contender(std::size_t bytes, int threads, bool fits, CacheState cache);
  std::vector<std::unique_ptr<BaselineCall>> baselines_of(const BenchRow& row);
  void load(const BenchRow& row);

  Roofs& roofs_;
  const Machine& machine_;
  Baselines* baselines_;
  std::map<std::pair<std::string, int>, Queue> queues_;
  std::map<int, std::unique_ptr<ThreadPool>> pools_;
  std::string loaded_;  // which case data_ holds
  std::unique_ptr<BenchData> data_;
  MemoryBlock copied_;
};

/// A sentence where the time is shorter than the machine can: fewer seconds than the flops take at the peak,
/// or 0.9 of what the bytes take at the best rate measured. Measures again before it says so.
std::string impossible(Roofs& roofs, double bytes, double flops, double seconds, std::size_t footprint,
                       DType dtype, int threads);

/// Lets a queue's kernels do nothing while it lives: what is left of a call is its floor.
class WithoutKernels {
 public:
  explicit WithoutKernels(const Queue& queue);
  ~WithoutKernels();
  WithoutKernels(const WithoutKernels&) = delete;
  WithoutKernels& operator=(const WithoutKernels&) = delete;

 private:
  struct Saved;
  std::unique_ptr<Saved> saved_;
};

/// Costs that no row shows: a call's, a parallel region's. An array for the record's "overheads".
nlohmann::json measure_overheads(const Queue& one, const Queue& all);

}  // namespace rooftile::harness
