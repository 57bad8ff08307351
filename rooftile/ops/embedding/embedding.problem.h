#pragma once
// What passes from validation (embedding.cpp) to the launches (embedding.cpu.cpp, embedding.cu).
#include "rooftile/core/rows.h"

namespace rooftile {

struct EmbeddingTokens {
  const void* data;
  DType dtype;
  std::int64_t table_rows;

  constexpr std::int64_t at(std::int64_t offset) const {
    return dtype == DType::i64 ? static_cast<const std::int64_t*>(data)[offset]
                               : static_cast<const std::int32_t*>(data)[offset];
  }
  constexpr bool is_row(std::int64_t token) const { return token >= 0 && token < table_rows; }
};

struct EmbeddingProblem {
  enum { kY, kTokens, kPosition };
  Rows<3> rows;  ///< in this order, a row for each token
  void* y;
  EmbeddingTokens tokens;
  const void* table;
  std::int64_t table_stride, table_column_stride;
  const void* position;  ///< null: absent
  DType dtype;
};

/// A gradient of a table: rows of sums.
struct EmbeddingSums {
  void* data;  ///< null: absent
  std::int64_t rows, stride, column_stride;
};

struct EmbeddingBackwardProblem {
  enum { kDy, kTokens };
  Rows<2> rows;
  const void* dy;
  EmbeddingTokens tokens;
  std::int64_t padding, length;  ///< length: S, so that row i is at place i % S
  EmbeddingSums table, position;
  /// Workspace: the tokens' rows sorted by token, and where each token's end; one's begin where the one's
  /// before end. Then what sorting needs on a GPU.
  std::int32_t *order, *ends, *other_order, *histograms;
  DType dtype;

  /// What a row is sorted by: its token; behind all, one that has no gradient.
  constexpr std::int64_t key(std::int64_t token) const {
    return tokens.is_row(token) && token != padding ? token : tokens.table_rows;
  }
};

/// Tokens that a GPU's block counts and places at a time.
inline constexpr std::int64_t kEmbeddingChunk = 2048;
inline constexpr int kEmbeddingDigits = 256;

}  // namespace rooftile
