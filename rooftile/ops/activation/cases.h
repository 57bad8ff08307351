#pragma once
#include "rooftile/harness/signature_spec.h"
#include "rooftile/ops/activation/oracle.h"

namespace rooftile::harness {

/// Derivatives that follow from y take what a sigmoid or a tanh may be.
inline void activation_bounds(const Case& c, Arrays<double>& inputs) {
  if (c.fill != Fill::huge && c.fill != Fill::huge_rows) return;
  for (double& y : inputs["y"].values())
    y = std::ldexp(y, c.dtype == DType::f64 ? -1024 : c.dtype == DType::f16 ? -16 : -128);
}

inline std::vector<Spec> activation_specs() {
  const std::vector<double> betas = {1, -0.7, 0, 1e-30, 1e30};
  std::vector<Spec> specs = {exact_lanes_spec<1, Relu::value>("relu"),
                             exact_lanes_spec<2, Relu::backward>("relu_backward"),
                             lanes_spec<1, Silu::value>("silu", betas),
                             lanes_spec<1, Gelu::value>("gelu"),
                             lanes_spec<2, kBackward<Gelu>>("gelu_backward"),
                             lanes_spec<1, Sigmoid::value>("sigmoid"),
                             lanes_spec<2, kBackward<Sigmoid>>("sigmoid_backward"),
                             lanes_spec<2, kBackward<Tanh>>("tanh_backward"),
                             lanes_spec<1, Tanh::value>("tanh"),
                             lanes_spec<2, kBackward<Silu>>("silu_backward", betas)};
  specs[6].prepare = specs[7].prepare = activation_bounds;
  specs[8].excuses = {{"lower_precision", "a tanh of bf16 that is rounded to bf16 once is the answer",
                       [](const Case& c) { return c.dtype == DType::bf16; }}};
  specs[9].suits = suits_silu;
  return specs;
}

}  // namespace rooftile::harness
