#pragma once
#include "rooftile/harness/signature_spec.h"
#include "rooftile/ops/gated/oracle.h"

namespace rooftile::harness {

inline std::vector<Spec> gated_specs() {
  const std::vector<double> betas = {1, -0.7, 0, 1e30}, forms = {0, 1};
  return {
      elements_spec("geglu", bounded_oracles<GatedOracle<Gelu>>(), forms),
      elements_spec("geglu_backward", bounded_oracles<GatedBackwardOracle<Gelu>>(), forms, "geglu"),
      elements_spec("swiglu", bounded_oracles<GatedOracle<Silu>>(), betas),
      elements_spec("swiglu_backward", bounded_oracles<GatedBackwardOracle<Silu>>(), betas, "swiglu"),
  };
}

}  // namespace rooftile::harness
