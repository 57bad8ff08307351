#pragma once
// What passes from validation (dropout.cpp) to the launches (dropout.kernels.cpp).
#include "rooftile/core/elements.h"
#include "rooftile/core/philox.h"

namespace rooftile {

struct DropoutProblem {
  ElementsProblem<3> elements;  ///< y, x, residual, or y again; in row-major order
  bool adds_residual;
  PhiloxNumbers numbers;
  PhiloxKeep keep;
};

}  // namespace rooftile
