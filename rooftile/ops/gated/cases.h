#pragma once
#include "rooftile/harness/signature_spec.h"
#include "rooftile/ops/gated/oracle.h"

namespace rooftile::harness {

inline std::vector<Spec> gated_specs() {
  const std::vector<double> betas = {1, -0.7, 0, 1e30};
  std::vector<Spec> specs = {lanes_spec<2, kGated<Gelu>>("geglu"),
                             lanes_spec<3, kGatedBackward<Gelu>>("geglu_backward"),
                             lanes_spec<2, kGated<Silu>>("swiglu", betas),
                             lanes_spec<3, kGatedBackward<Silu>>("swiglu_backward", betas)};
  // The product of dy and up comes first, and is to be a number: where it overflows, a closed gate's 0 makes
  // it NaN.
  specs[1].largest_exponent = specs[3].largest_exponent = 60;
  specs[2].suits = specs[3].suits = suits_silu;
  return specs;
}

}  // namespace rooftile::harness
