#pragma once
// What passes from validation (row_reduce.cpp) to the launches (row_reduce.cpu.cpp, row_reduce.cu).
#include "rooftile/core/rows.h"

namespace rooftile {

struct RowReduceProblem {
  enum { kX, kY };
  Rows<2> rows;  ///< y has one value for each row
  const void* x;
  void* y;  ///< of x's dtype, or indices of i64
  DType dtype;
  int kind;  ///< a RowReduction; of indices, 1: of the smallest
};

struct RowReduceBackwardProblem {
  enum { kDx, kX, kY, kDy };
  Rows<4> rows;
  void* dx;
  const void *x, *y, *dy;
  DType dtype;
  int kind;
};

}  // namespace rooftile
