#pragma once
// What passes from validation (transpose.cpp) to the launches (transpose.cpu.cpp, transpose.cu, the ladders).
#include "rooftile/core/rows.h"

namespace rooftile {

/// One direction in which a matrix is walked, with its strides in elements.
struct TransposeAxis {
  std::int64_t size = 1, x_stride = 0, y_stride = 0;
};

struct TransposeProblem {
  const void* x;
  void* y;
  DType dtype;

  // As the equation reads: y[j][i] = x[i][j], i below m and j below n.
  std::int64_t m, n;
  bool plain;  ///< one matrix, in x and in y row by row without gaps: what the rungs take

  // As a kernel walks it. `down` runs along y's neighbours (i, down a column of x), `across` along x's (j,
  // along a row of x); all other dimensions are a batch. Where one stride covers several dimensions in both
  // tensors, they are one.
  TransposeAxis down, across;
  Rows<2> batch;  ///< of y, x: a row for each matrix
  Rows<2> rows;   ///< of y, x: the same elements as rows along y's neighbours

  int width() const { return bits(dtype) / 8; }
  std::int64_t size() const { return batch.rows * down.size * across.size; }
  /// Whether neighbours in y are no neighbours in x. Else all is but a copy.
  bool turned() const {
    return across.size > 1 && std::llabs(across.x_stride) < std::llabs(down.x_stride) && across.x_stride != 0;
  }
  /// Whether a step along `across` is one element of x, and a step along `down` one of y.
  bool side_by_side() const { return turned() && across.x_stride == 1 && down.y_stride == 1; }
};

}  // namespace rooftile
