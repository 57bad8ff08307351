#pragma once
// What passes from validation (blas1.cpp) to the launches (blas1.cpu.cpp and the ladder).
#include "rooftile/core/rows.h"

namespace rooftile {

struct CopyProblem {
  Rows<2> rows;  // of y, x
  const void* x;
  void* y;
  DType dtype;
};

struct AddProblem {
  Rows<3> rows;  // of z, x, y
  const void* x;
  const void* y;
  void* z;
  DType dtype;
};

struct AxpbyProblem {
  Rows<2> rows;  // of y, x
  double alpha;
  const void* x;
  double beta;
  void* y;
  DType dtype;

  /// A factor as the arithmetic has it: for f64 as it is, else rounded to f32, which may be 0.
  double factor(double given) const {
    return dtype == DType::f64 ? given : static_cast<double>(static_cast<float>(given));
  }
};

struct DotProblem {
  Rows<2> rows;  // of x, y, in row-major order
  const void* x;
  const void* y;
  void* result;
  DType dtype;
  DType result_dtype;

  std::int64_t size() const { return rows.rows * rows.columns; }
  /// Whether an operand's elements lie one beside the other in row-major order.
  bool side_by_side(int operand) const {
    std::int64_t expected = rows.columns;
    for (int d = rows.rank - 1; d >= 0; --d) {
      if (rows.stride[operand][d] != expected) return false;
      expected *= rows.extent[d];
    }
    return rows.column_stride[operand] == 1;
  }
};

}  // namespace rooftile
