#pragma once
// What passes from validation (softmax.cpp) to the launches (softmax.cpu.cpp and the ladder).
#include "rooftile/core/rows.h"

namespace rooftile {

struct SoftmaxProblem {
  Rows<2> rows;  // of x, y
  const void* x;
  void* y;
  DType dtype;
  float scale;
  bool log;
};

struct SoftmaxBackwardProblem {
  Rows<3> rows;  // of y, dy, dx
  const void* y;
  const void* dy;
  void* dx;
  DType dtype;
  float scale;
  bool log;
};

}  // namespace rooftile
