#pragma once
// What passes from validation (softmax.cpp) to the launches (softmax.cpu.cpp, softmax.cu and the ladder).
#include "rooftile/core/row_problem.h"

namespace rooftile {

struct SoftmaxProblem {
  Rows<2> rows;  // of x, y
  const void* x;
  void* y;
  DType dtype;
  double scale;
  bool log;
  bool masked = false;       // a row that is -inf throughout gives 0
  std::int64_t queries = 0;  // causal: row i is query i % queries; 0: every row sees all keys

  /// How many keys a row sees, from its first on.
  constexpr std::int64_t seen(std::int64_t row) const {
    if (queries == 0) return rows.columns;
    const std::int64_t keys = row % queries + 1 + rows.columns - queries;
    return keys < 0 ? 0 : keys;
  }
};

using SoftmaxBackwardProblem = RowProblem<RowCounts{.inputs = 2, .outputs = 1}>;  // y, dy; dx

}  // namespace rooftile
