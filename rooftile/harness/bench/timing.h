#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

namespace rooftile::harness {

/// Nanoseconds of a clock that never goes back.
std::int64_t now_ns();

/// What two calls of now_ns() with nothing between them measure: the median of many. Subtract it from short
/// times.
double clock_floor_ns();

/// Times of one measurement repeated, and their order statistics (linear between neighbours).
class Samples {
 public:
  Samples() = default;
  explicit Samples(std::vector<double> values) : values_(std::move(values)) {}

  void add(double value) { values_.push_back(value); }
  void clear() { values_.clear(); }
  std::size_t size() const { return values_.size(); }
  const std::vector<double>& values() const { return values_; }

  /// The value below which the given share (0 to 1) of the samples lies; 0 of no samples.
  double quantile(double share) const;
  double median() const { return quantile(0.5); }
  double p5() const { return quantile(0.05); }
  double p95() const { return quantile(0.95); }
  double min() const { return quantile(0); }
  double max() const { return quantile(1); }

 private:
  std::vector<double> values_;
};

/// Makes sure that no cache of any core holds a line of the range, so that the next access goes to memory.
/// On a CPU without a flush instruction, falls back to flush_caches().
void flush_range(const void* data, std::size_t bytes);

/// Pushes everything else out of this core's caches by writing four times the last-level cache (at most
/// 1 GiB). Lines in other cores' private caches may stay; flush_range reaches those as well.
void flush_caches();

}  // namespace rooftile::harness
