#pragma once
// The weight of gemm_int4's product (rooftile/ops/gemm/gemm.codes.h).
#include "rooftile/ops/gemm/gemm.codes.h"
#include "rooftile/ops/int4/int4.problem.h"

namespace rooftile {

struct Int4Weight {
  static constexpr const char *kFunction = "gemm_int4", *kPacked = "packed",
                              *kRuns = "K and group in multiples of 32, K and packed's rows contiguous";
  const std::uint8_t* packed;
  const void* scales;
  const std::uint8_t* zeros;  ///< null: each is kInt4Middle
  std::int64_t n, k, packed_row, packed_column, scale_row, scale_column, zero_row, zero_column;
  std::int64_t group;
  int group_log;  ///< of a power of two, or of what is beyond K; else -1
  DType scale_type;
  bool runs = false;

  static Status dequantise(const Queue& queue, const Call& call, const View& to);
  bool in_runs(std::uintptr_t bytes) const {
    const auto rows = n > 1 ? static_cast<std::uintptr_t>(packed_row) : 0;
    return k % kCodesRun == 0 && (group % kCodesRun == 0 || group >= k) && packed_column == 1 &&
           (reinterpret_cast<std::uintptr_t>(packed) | rows) % bytes == 0;
  }
  constexpr int shared_log() const {
    return group_log < 5 ? 0 : group_log - 5 < kSharedRunsLog ? group_log - 5 : kSharedRunsLog;
  }
  struct Line {
    std::int64_t row;
  };
  constexpr Line line(std::int64_t row) const { return {row}; }
  constexpr const std::uint8_t* code(Line line, std::int64_t its) const {
    return packed + line.row * packed_row + its / 2 * packed_column;
  }
  constexpr bool high(Line, std::int64_t its) const { return its % 2 != 0; }
  constexpr std::int64_t group_of(std::int64_t its) const {
    return group_log >= 0   ? its >> group_log
           : its >> 32 == 0 ? static_cast<std::uint32_t>(its) / static_cast<std::uint32_t>(group)
                            : its / group;
  }
  constexpr std::int64_t scale_at(Line line, std::int64_t its_group) const {
    return line.row * scale_row + its_group * scale_column;
  }
  constexpr unsigned zero(Line line, std::int64_t its_group) const {
    return zeros ? zeros[line.row * zero_row + its_group * zero_column] : static_cast<unsigned>(kInt4Middle);
  }
  /// A byte's first is in its low nibble.
  static constexpr int shift(int element) { return 4 * element; }
};

}  // namespace rooftile
