#pragma once
#include "rooftile/harness/signature_spec.h"
#include "rooftile/ops/activation/oracle.h"

namespace rooftile::harness {

/// The derivatives that follow from y take what a sigmoid or a tanh may be.
inline Spec activation_of_output(Spec spec) {
  spec.prepare = [](const Case& c, Arrays<double>& inputs) {
    if (c.fill != Fill::huge && c.fill != Fill::huge_rows) return;
    for (double& y : inputs["y"].values()) y = std::ldexp(y, c.dtype == DType::f16 ? -16 : -128);
  };
  return spec;
}

inline std::vector<Spec> activation_specs() {
  const std::vector<double> betas = {1, -0.7, 0, 1e-30, 1e30}, forms = {0, 1};
  Spec tanh = elements_spec("tanh", bounded_oracles<ActivationOracle<Tanh>>());
  tanh.excuses = {{"lower_precision", "a tanh of bf16 that is rounded to bf16 once is the answer",
                   [](const Case& c) { return c.dtype == DType::bf16; }}};
  Spec silu_backward =
      elements_spec("silu_backward", bounded_oracles<ActivationBackwardOracle<Silu>>(), betas, "silu");
  // With more than 1 as beta a masked x has a slope of 0 in f32, not in the oracle: beside an infinity that
  // is NaN.
  silu_backward.suits = [](const Case& c) {
    return c.fill != Fill::masked || std::fabs(c.parameter("beta", 1)) <= 1;
  };
  return {
      elements_spec("relu", oracles<ActivationOracle<Relu>>(), {}, nullptr, true),
      elements_spec("relu_backward", oracles<ReluBackwardOracle>(), {}, "relu", true),
      elements_spec("sigmoid", bounded_oracles<ActivationOracle<Sigmoid>>()),
      activation_of_output(elements_spec(
          "sigmoid_backward", bounded_oracles<ActivationBackwardOracle<Sigmoid, true>>(), {}, "sigmoid")),
      tanh,
      activation_of_output(elements_spec(
          "tanh_backward", bounded_oracles<ActivationBackwardOracle<Tanh, true>>(), {}, "tanh")),
      elements_spec("silu", bounded_oracles<ActivationOracle<Silu>>(), betas),
      silu_backward,
      elements_spec("gelu", bounded_oracles<ActivationOracle<Gelu>>(), forms),
      elements_spec("gelu_backward", bounded_oracles<ActivationBackwardOracle<Gelu>>(), forms, "gelu"),
  };
}

}  // namespace rooftile::harness
