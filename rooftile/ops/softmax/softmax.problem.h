#pragma once
// What passes from validation (softmax.cpp) to the launches (softmax.cpu.cpp, softmax.cu and the ladder).
#include "rooftile/core/row_problem.h"

namespace rooftile {

struct SoftmaxProblem {
  Rows<2> rows;  // of x, y
  const void* x;
  void* y;
  DType dtype;
  float scale;
  bool log;
};

using SoftmaxBackwardProblem = RowProblem<RowCounts{.inputs = 2, .outputs = 1}>;  // y, dy; dx

}  // namespace rooftile
