#pragma once
// Measures one case on a device: operands, copy, kernel and baselines; what is believed becomes a line of the
// record.
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "rooftile/harness/bench/device_calls.h"
#include "rooftile/harness/bench/gpu_baselines.h"

namespace rooftile::harness {

/// One row of the record to be measured.
struct GpuRow {
  const Spec* spec = nullptr;
  Case c;
  std::string variant;      ///< empty: what the library chooses
  std::string group;        ///< "best", "ladder", "sweep" or "full"
  int rung = 0;             ///< in a ladder, from 1
  bool named = false;       ///< GpuBaselineCase::named
  std::size_t unit = 0;     ///< rows of one case have one number
  std::string series = {};  ///< in a sweep: which line of a plot
  bool first_line = false;  ///< and beside which the baselines run

  bool wants_baselines() const { return group == "best" || first_line; }
};

/// Keeps what rows share: the memory that flushes the cache, the copy's, the last case's operands.
class GpuSession {
 public:
  explicit GpuSession(const Queue& queue);
  ~GpuSession();

  /// The row's result; throws std::runtime_error with a sentence where it failed or cannot be believed.
  /// `baselines` may be null.
  nlohmann::json measure(const GpuRow& row, GpuBaselines* baselines);

  /// Device copies of several sizes: [{"bytes", "n", "median_us", "p5_us", "p95_us"}].
  nlohmann::json copies();

 private:
  void load(const GpuRow& row);
  std::byte* copy_room(std::size_t bytes);

  const Queue queue_;
  const bool tiny_;  // the emulated device: few rounds, no cache to flush
  DeviceBuffer flush_;
  double floor_us_ = 0;
  double rated_gbs_ = 0;  // of the memory; 0: not known
  DeviceDescription device_{};
  std::unique_ptr<DeviceBuffer> copied_;
  std::unique_ptr<DeviceOperands> operands_;
  std::string loaded_;
};

/// A hash of the library's and the plug-in's files, as 16 digits.
std::string build_of(const Queue& queue);

/// Five digits: more is noise, and records are read by people, too.
double rounded(double v);

/// "softmax tile bf16 8192x4096, offset 1".
std::string describe(const GpuRow& row);

}  // namespace rooftile::harness
