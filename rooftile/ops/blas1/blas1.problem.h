#pragma once
// What passes from validation (blas1.cpp) to the launches (blas1.cpu.cpp, blas1.cu and the ladder).
#include "rooftile/core/elements.h"
#include "rooftile/core/reduction.h"

namespace rooftile {

struct CopyProblem {
  Rows<2> rows;  // of y, x
  const void* x;
  void* y;
  DType dtype, to;  ///< of x, of y; where they differ, f32 and one of 16 bits
};

struct AddProblem {
  Rows<3> rows;  // of z, x, y
  const void* x;
  const void* y;
  void* z;
  DType dtype;
};

using AxpbyProblem = ElementsProblem<3>;  // y, x, y
/// A factor as the arithmetic has it: for f64 as it is, else rounded to f32, which may be 0.
inline double axpby_factor(const AxpbyProblem& p, int option) {
  const double given = p.options[option];
  return p.dtype == DType::f64 ? given : static_cast<double>(static_cast<float>(given));
}

using DotProblem = ReductionProblem<2>;

}  // namespace rooftile
