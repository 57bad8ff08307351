#pragma once
// What passes from validation (blas2.cpp) to the launches (blas2.cpu.cpp, blas2.cu).
#include <cstdint>

#include "rooftile/core/dtype.h"

namespace rooftile {

/// y_i = alpha · Σ_j a[i·a_row + j·a_column]·x[j·x_stride] + beta·c_i. Strides in elements.
struct GemvProblem {
  const void *a, *x;
  const void* c;  ///< null: not read
  void* y;        ///< null: not wanted
  DType dtype;
  std::int64_t m, n, a_row, a_column, x_stride, c_stride, y_stride;
  double alpha, beta;
};

/// a_ij = alpha·x_i·y_j + c_ij. Without x and y: a = c.
struct GeruProblem {
  const void *x, *y;
  const void* c;  ///< null: nothing is added
  void* a;        ///< null: not wanted
  DType dtype;
  std::int64_t m, n, x_stride, y_stride, c_row, c_column, a_row, a_column;
  double alpha;
};

/// What a backward computes: each where it is wanted.
struct Blas2Gradients {
  GemvProblem products[2];
  GeruProblem outer;
};

}  // namespace rooftile
