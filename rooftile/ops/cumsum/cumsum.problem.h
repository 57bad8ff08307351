#pragma once
// What passes from validation (cumsum.cpp) to the launches (cumsum.cpu.cpp, cumsum.cu).
#include "rooftile/core/rows.h"

namespace rooftile {

struct CumsumProblem {
  enum { kX, kY };
  Rows<2> rows;
  const void* x;
  void* y;
  DType dtype;
  bool exclusive, reverse;
};

}  // namespace rooftile
