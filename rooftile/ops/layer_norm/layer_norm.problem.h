#pragma once
// What passes from validation (layer_norm.cpp) to the launches (layer_norm.cpu.cpp and the ladder).
#include <algorithm>
#include <bit>

#include "rooftile/core/rows.h"

namespace rooftile {

/// A vector of one element for each column, as a weight; data is null where it is absent.
struct LayerNormColumns {
  const void* data;
  std::int64_t stride;
};

struct LayerNormProblem {
  enum Operand { kX, kResidual, kY, kSum, kMean, kRstd, kOperands };
  Rows<kOperands> rows;
  const void* data[kOperands];  // null: absent
  LayerNormColumns weight, bias;
  DType dtype, weight_dtype;
  float eps;
};

struct LayerNormBackwardProblem {
  enum Operand { kX, kDy, kDx, kMean, kRstd, kOperands };
  Rows<kOperands> rows;
  const void* data[kOperands];
  LayerNormColumns weight, dweight, dbias;
  DType dtype, weight_dtype, gradient_dtype;
  float*
      sums;  // workspace: for each block of rows, dweight's and then dbias's sums, those that are asked for
};

/// Blocks of rows that add up their weight gradients apart. A power of two, so that 2, 4, 8 … threads get
/// equal shares; at most 64; and at least 16 rows each, so that writing and reading a block's sums moves less
/// than a tenth of what its rows do (f32: 4 rows' worth in 48).
constexpr std::int64_t layer_norm_blocks(std::int64_t rows) {
  constexpr std::int64_t kLeastRows = 16, kMost = 64;
  if (rows < 2 * kLeastRows) return rows > 0 ? 1 : 0;
  return std::min<std::int64_t>(
      kMost, static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(rows / kLeastRows))));
}
/// The first row of a block; the last block's end is `rows`. Sizes differ by one at most.
constexpr std::int64_t layer_norm_block_begin(std::int64_t rows, std::int64_t block) {
  const std::int64_t blocks = layer_norm_blocks(rows);
  return rows / blocks * block + std::min(block, rows % blocks);
}
/// Elements from one row of sums to the next: whole cache lines.
constexpr std::int64_t layer_norm_sums_stride(std::int64_t columns) { return (columns + 15) / 16 * 16; }

}  // namespace rooftile
