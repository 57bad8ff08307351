#pragma once
// What passes from validation (gemm_scaled.cpp) to the launches (gemm_scaled.cpu.cpp, gemm_scaled.cu).
#include "rooftile/ops/gemm/gemm.problem.h"

namespace rooftile {

/// gemm's product, of codes, with scales: of a[i, p] scale_a[i·a_row + p/block·a_block], of b[p, j]
/// scale_b[p/block·b_block + j/block_n·b_column].
struct GemmScaledProblem {
  GemmProblem product;  ///< `type`: a's
  DType b_type;
  const float *scale_a, *scale_b;
  std::int64_t a_row, a_block, b_block, b_column;
  /// Row r's matrices' scales begin at scale_a + scales.offset(0, r), scale_b + scales.offset(1, r).
  Rows<2> scales;
  std::int64_t block, block_n;  ///< from 1 up, at most K and N where these are above 0
  void* halves;  ///< a Hopper GPU's room for f8 operands as halves, a's rows, then b's columns; or null

  static constexpr int kFewRows = 16;       // that few_rows takes
  static constexpr int kHopperBlock = 128;  // of wgmma, where there are several

  /// Halves from a row or column to the next: whole 16-byte words.
  static std::int64_t halves_pitch(std::int64_t k) { return (k + 7) / 8 * 8; }
  bool integers() const { return product.type == DType::i8; }
  std::int64_t blocks() const { return (product.k + block - 1) / block; }
};

}  // namespace rooftile
