#pragma once
#include "rooftile/core/signature.h"

namespace rooftile {

inline constexpr Signature::Types kActivationTypes{'T', {DType::f32, DType::f16, DType::bf16}};

/// y = f(x).
constexpr Signature activation_signature(const char* function, Signature::Option option = {}) {
  return {function, {kActivationTypes}, {input("x", 'T', "..."), output("y", 'T', "...", "x")}, {option}};
}
/// dx from `given`, which is x or y, and dy.
constexpr Signature activation_backward_signature(const char* function, const char* given, const char* may_be,
                                                  Signature::Option option = {}) {
  return {function,
          {kActivationTypes},
          {input(given, 'T', "..."), input("dy", 'T', "..."), output("dx", 'T', "...", may_be)},
          {option}};
}

inline constexpr Signature kRelu = activation_signature("relu");
inline constexpr Signature kReluBackward = activation_backward_signature("relu_backward", "x", "x dy");
inline constexpr Signature kSigmoid = activation_signature("sigmoid");
inline constexpr Signature kSigmoidBackward = activation_backward_signature("sigmoid_backward", "y", "y dy");
inline constexpr Signature kTanh = activation_signature("tanh");
inline constexpr Signature kTanhBackward = activation_backward_signature("tanh_backward", "y", "y dy");
inline constexpr Signature kSilu = activation_signature("silu", real("beta", 1));
inline constexpr Signature kSiluBackward =
    activation_backward_signature("silu_backward", "x", "x dy", real("beta", 1));
inline constexpr Signature kGelu = activation_signature("gelu", flag("tanh"));
inline constexpr Signature kGeluBackward =
    activation_backward_signature("gelu_backward", "x", "x dy", flag("tanh"));

}  // namespace rooftile
