#pragma once
// What passes from validation (ema.cpp) to the launches (ema.kernels.cpp).
#include "rooftile/core/lists.h"

namespace rooftile {

struct EmaNumbers {
  double decay;
};
using EmaProblem = ListsProblem<EmaNumbers, 2>;

}  // namespace rooftile
