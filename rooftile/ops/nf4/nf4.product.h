#pragma once
// The weight of gemm_nf4's product (rooftile/ops/gemm/gemm.codes.h).
#include "rooftile/ops/gemm/gemm.codes.h"
#include "rooftile/ops/nf4/nf4.problem.h"

namespace rooftile {

/// The levels, as a kernel's parameter: device code has no arrays of the host's.
struct Nf4Table {
  float at[16];
};
inline constexpr Nf4Table kNf4Table = [] {
  Nf4Table table{};
  for (int i = 0; i < 16; ++i) table.at[i] = kNf4Levels[i];
  return table;
}();

/// W[n, k] is element n·K + k of what is packed.
struct Nf4Weight {
  static constexpr const char *kFunction = "gemm_nf4", *kPacked = "packed",
                              *kRuns = "K in multiples of 32 and contiguous";
  const std::uint8_t* packed;
  std::int64_t packed_stride;
  const float* absmax;
  std::int64_t absmax_stride, n, k;
  int block_log;
  bool runs = false;
  Nf4Table levels = kNf4Table;

  static Status dequantise(const Queue& queue, const Call& call, const View& to);
  /// No block is smaller than a run.
  bool in_runs(std::uintptr_t bytes) const {
    return k % kCodesRun == 0 && packed_stride == 1 && reinterpret_cast<std::uintptr_t>(packed) % bytes == 0;
  }
  constexpr int shared_log() const {
    const int log = block_log - 5 < kSharedRunsLog ? block_log - 5 : kSharedRunsLog;
    return k & ((std::int64_t{kCodesRun} << log) - 1) ? 0 : log;  // else blocks begin within rows
  }
  struct Line {
    std::int64_t first;
  };
  constexpr Line line(std::int64_t row) const { return {row * k}; }
  constexpr const std::uint8_t* code(Line line, std::int64_t its) const {
    return packed + (line.first + its) / 2 * packed_stride;
  }
  constexpr bool high(Line line, std::int64_t its) const { return (line.first + its) % 2 == 0; }
  constexpr std::int64_t group_of(std::int64_t its) const { return its; }  // blocks are of all rows
  constexpr float scale(Line line, std::int64_t its) const {
    return absmax[((line.first + its) >> block_log) * absmax_stride];
  }
  /// A byte's first is in its high nibble.
  static constexpr int shift(int element) { return element / 2 * 8 + (element % 2 ? 0 : 4); }
};

}  // namespace rooftile
