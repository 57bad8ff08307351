#pragma once
// What passes from validation (skeleton.cpp) to the launches (skeleton.cpu.cpp and the ladder).
#include "rooftile/core/rows.h"

namespace rooftile {

struct SkeletonProblem {
  Rows<2> rows;  // of x, y
  const void* x;
  void* y;
  DType dtype;
};

}  // namespace rooftile
