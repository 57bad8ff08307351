#pragma once
#include "rooftile/ops/normalize/oracle.h"

namespace rooftile::harness {

template <bool kL1>
void add_normalize_specs(std::vector<Spec>& specs, const char* forward, const char* backward) {
  const std::vector<double> eps = {1.0, 1e3};
  Spec f = row_spec({.function = forward,
                     .oracle = oracles<NormalizeOracle<kL1>, true>(),
                     .reason = "a sum, a root, a quotient and a product",
                     .values = {{"eps", eps}},
                     .far_rows = true});
  // Sums, of doubles, too.
  f.largest_exponent = kL1 ? 1000 : 500;
  // There squares of the least numbers are 0.
  f.suits = [](const Case& c) { return kL1 || c.dtype != DType::f64 || c.fill != Fill::denormals; };
  Spec b = row_spec({.function = backward,
                     .oracle = oracles<NormalizeBackwardOracle<kL1>, true>(),
                     .reason = "a sum, two quotients and three products",
                     .gradient_of = forward,
                     .values = {{"eps", eps}}});
  b.largest_exponent = 40;
  // Without eps the norm of the least numbers has an inverse that f32 does not hold.
  b.suits = [](const Case& c) { return c.fill != Fill::denormals || c.parameter("eps", 1e-12) > 1e-30; };
  b.prepare = [](const Case&, Arrays<double>& inputs) {
    for (double& norm : inputs["norm"].values()) norm = std::fabs(norm);
    // The sign of 0 is 0, which no random number shows.
    if (kL1) {
      std::vector<double>& x = inputs["x"].values();
      for (std::size_t i = 3; i < x.size(); i += 7) x[i] = 0;
    }
  };
  specs.push_back(f);
  specs.push_back(b);
}

inline std::vector<Spec> normalize_specs() {
  std::vector<Spec> specs;
  add_normalize_specs<true>(specs, "l1_normalize", "l1_normalize_backward");
  add_normalize_specs<false>(specs, "l2_normalize", "l2_normalize_backward");
  return specs;
}

}  // namespace rooftile::harness
