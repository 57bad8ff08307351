#pragma once
#include "rooftile/harness/signature_spec.h"
#include "rooftile/ops/gated/oracle.h"

namespace rooftile::harness {

/// The product of dy and up comes first, and is to be a number: where it overflows, a closed gate's 0 makes
/// it NaN.
inline Spec gated_backward(Spec spec) {
  spec.largest_exponent = 60;
  return spec;
}

/// With more than 1 as beta a masked gate's share is 0 in f32, not in the oracle: beside an infinity that is
/// NaN.
inline Spec swiglu_of(Spec spec) {
  spec.suits = [](const Case& c) { return c.fill != Fill::masked || std::fabs(c.parameter("beta", 1)) <= 1; };
  return spec;
}

inline std::vector<Spec> gated_specs() {
  const std::vector<double> betas = {1, -0.7, 0, 1e30}, forms = {0, 1};
  return {
      elements_spec("geglu", bounded_oracles<GatedOracle<Gelu>>(), forms),
      gated_backward(
          elements_spec("geglu_backward", bounded_oracles<GatedBackwardOracle<Gelu>>(), forms, "geglu")),
      swiglu_of(elements_spec("swiglu", bounded_oracles<GatedOracle<Silu>>(), betas)),
      swiglu_of(gated_backward(
          elements_spec("swiglu_backward", bounded_oracles<GatedBackwardOracle<Silu>>(), betas, "swiglu"))),
  };
}

}  // namespace rooftile::harness
