#pragma once
// What passes from validation (loss_scale.cpp) to the launches (loss_scale.kernels.cpp).
#include "rooftile/core/lists.h"

namespace rooftile {

struct UnscaleNumbers {
  const float* scale;
  float* found_inf;
};
using UnscaleProblem = ListsProblem<UnscaleNumbers, 1>;

struct UpdateLossScaleNumbers {
  double growth_factor, backoff_factor;
  std::int64_t growth_interval;
  float* scale;
  std::int32_t* growth_tracker;
  const float* found_inf;
};

}  // namespace rooftile
