#pragma once
// How gemm_pack lays out a matrix: a header, then strips of 32 columns, row after row. The same on every CPU.
#include <algorithm>
#include <bit>

#include "rooftile/core/convert.h"
#include "rooftile/core/status.h"
#include "rooftile/ops/gemm/gemm.problem.h"

namespace rooftile {

/// Columns of a strip, a multiple of every instruction set's micro-tile. The last strip has what is left.
inline constexpr std::int64_t kPackedColumns = 32;

/// The strip of column j: its first element after the header, its columns, and which of them j is.
struct PackedStrip {
  std::int64_t begin, width, column;
};
constexpr PackedStrip packed_strip(std::int64_t k, std::int64_t n, std::int64_t j) {
  const std::int64_t first = j / kPackedColumns * kPackedColumns;
  return {first * k, std::min(kPackedColumns, n - first), j - first};
}

/// The header: whole numbers below 64, which every dtype holds exactly. A name, the layout's version, the
/// dtype's place in the list of dtypes, K and N as digits of base 64, the lowest first; then zeros.
struct PackedHeader {
  static constexpr int kSize = 64, kName = 8, kVersion = 8, kType = 9, kK = 10, kN = 21, kDigits = 11;
  std::int8_t number[kSize] = {18, 15, 15, 6, 20, 9, 12, 5, 1};

  constexpr PackedHeader(DType type, std::int64_t k, std::int64_t n) {
    number[kType] = static_cast<std::int8_t>(type);
    for (int d = 0; d < kDigits; ++d, k /= 64, n /= 64) {
      number[kK + d] = static_cast<std::int8_t>(k % 64);
      number[kN + d] = static_cast<std::int8_t>(n % 64);
    }
  }
  /// K or N.
  constexpr std::int64_t size(int first) const {
    std::uint64_t value = 0;
    for (int d = kDigits - 1; d >= 0; --d) value = value * 64 + static_cast<std::uint64_t>(number[first + d]);
    return static_cast<std::int64_t>(value);
  }
};

/// A header's number as an element: the bytes of the dtype's size, the lowest first.
inline std::uint64_t packed_number(DType type, int number) {
  switch (type) {
    case DType::f64:
      return std::bit_cast<std::uint64_t>(double(number));
    case DType::f16:
      return from_double<f16>(number).bits;
    case DType::bf16:
      return from_double<bf16>(number).bits;
    case DType::i8:
      return static_cast<std::uint64_t>(number);
    default:
      return std::bit_cast<std::uint32_t>(float(number));
  }
}

/// A product whose b is packed: b points at its header, b_column is its stride. A kernel runs `check` first:
/// only then may the header be read.
struct PackedProduct : GemmProblem {
  Status (*check)(const PackedProduct&);
};

}  // namespace rooftile
