#pragma once
// What passes from validation (sgd.cpp) to the launches (sgd.kernels.cpp).
#include "rooftile/core/lists.h"

namespace rooftile {

struct SgdNumbers {
  double lr, momentum, dampening, weight_decay;
  bool nesterov, maximize;
  std::int64_t step;  ///< where `steps` is null
  std::int64_t* steps;
  const float *gradient_scale, *found_inf;  ///< null: absent
};
/// The lists, in the signature's order.
enum SgdList { kSgdParameter, kSgdGradient, kSgdBuffer, kSgdMaster, kSgdLists };
using SgdProblem = ListsProblem<SgdNumbers, kSgdLists>;

}  // namespace rooftile
