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

inline std::vector<Spec> gated_specs() {
  const std::vector<double> betas = {1, -0.7, 0, 1e30}, forms = {0, 1};
  return {
      elements_spec("geglu", bounded_oracles<GatedOracle<Gelu>>(), forms),
      gated_backward(
          elements_spec("geglu_backward", bounded_oracles<GatedBackwardOracle<Gelu>>(), forms, "geglu")),
      elements_spec("swiglu", bounded_oracles<GatedOracle<Silu>>(), betas),
      gated_backward(
          elements_spec("swiglu_backward", bounded_oracles<GatedBackwardOracle<Silu>>(), betas, "swiglu")),
  };
}

}  // namespace rooftile::harness
