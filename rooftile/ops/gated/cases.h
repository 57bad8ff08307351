#pragma once
#include "rooftile/ops/activation/cases.h"
#include "rooftile/ops/gated/gated.signatures.h"
#include "rooftile/ops/gated/oracle.h"

namespace rooftile::harness {

inline std::vector<Spec> gated_specs() {
  const auto betas = [] { return activation_cases("beta", {1, -0.7, 0, 1e30}); };
  const auto forms = [] { return activation_cases("tanh", {0, 1}); };
  // Those of the activation, and the products; the backward computes value and slope.
  return {
      activation_spec<kGeglu>(
          oracles<GatedOracle<Gelu>>(),
          [](const Case& c) { return (c.parameter("tanh") ? 10 : 6) * elements_of(c); }, forms),
      activation_spec<kGegluBackward>(
          oracles<GatedBackwardOracle<Gelu>>(),
          [](const Case& c) { return (c.parameter("tanh") ? 27 : 18) * elements_of(c); }, forms, "geglu"),
      activation_spec<kSwiglu>(
          oracles<GatedOracle<Silu>>(), [](const Case& c) { return 7 * elements_of(c); }, betas),
      activation_spec<kSwigluBackward>(
          oracles<GatedBackwardOracle<Silu>>(), [](const Case& c) { return 18 * elements_of(c); }, betas,
          "swiglu"),
  };
}

}  // namespace rooftile::harness
