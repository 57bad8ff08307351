#pragma once
// What passes from validation (adamw.cpp) to the launches (adamw.kernels.cpp).
#include "rooftile/core/lists.h"

namespace rooftile {

struct AdamwNumbers {
  double lr, beta1, beta2, eps, weight_decay;
  bool l2, maximize;
  std::int64_t step;  ///< where `steps` is null
  std::int64_t* steps;
  const float *gradient_scale, *found_inf;  ///< null: absent
};

/// The lists, in the signature's order.
enum AdamwList { kAdamwParameter, kAdamwGradient, kAdamwM, kAdamwV, kAdamwMaxV, kAdamwMaster, kAdamwLists };
using AdamwProblem = ListsProblem<AdamwNumbers, kAdamwLists>;

}  // namespace rooftile
