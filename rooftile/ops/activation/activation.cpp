#include "rooftile/ops/activation/activation.h"

#include "rooftile/core/elements.h"

namespace rooftile {
namespace {

constexpr Signature::Types kActivationTypes{'T', {DType::f32, DType::f16, DType::bf16}};

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

constexpr Signature kRelu = activation_signature("relu");
constexpr Signature kReluBackward = activation_backward_signature("relu_backward", "x", "x dy");
constexpr Signature kSigmoid = activation_signature("sigmoid");
constexpr Signature kSigmoidBackward = activation_backward_signature("sigmoid_backward", "y", "y dy");
constexpr Signature kTanh = activation_signature("tanh");
constexpr Signature kTanhBackward = activation_backward_signature("tanh_backward", "y", "y dy");
constexpr Signature kSilu = activation_signature("silu", real("beta", 1));
constexpr Signature kSiluBackward =
    activation_backward_signature("silu_backward", "x", "x dy", real("beta", 1));
constexpr Signature kGelu = activation_signature("gelu", flag("tanh"));
constexpr Signature kGeluBackward = activation_backward_signature("gelu_backward", "x", "x dy", flag("tanh"));

}  // namespace

extern const Op relu_op = elements_op<kRelu>("relu", "forward");
extern const Op relu_backward_op = elements_op<kReluBackward>("relu", "backward");
extern const Op sigmoid_op = elements_op<kSigmoid>("sigmoid", "forward");
extern const Op sigmoid_backward_op = elements_op<kSigmoidBackward>("sigmoid", "backward");
extern const Op tanh_op = elements_op<kTanh>("tanh", "forward");
extern const Op tanh_backward_op = elements_op<kTanhBackward>("tanh", "backward");
extern const Op silu_op = elements_op<kSilu>("silu", "forward");
extern const Op silu_backward_op = elements_op<kSiluBackward>("silu", "backward");
extern const Op gelu_op = elements_op<kGelu>("gelu", "forward");
extern const Op gelu_backward_op = elements_op<kGeluBackward>("gelu", "backward");
extern const Op* const activation_ops[] = {&relu_op, &relu_backward_op, &sigmoid_op, &sigmoid_backward_op,
                                           &tanh_op, &tanh_backward_op, &silu_op,    &silu_backward_op,
                                           &gelu_op, &gelu_backward_op, nullptr};

Status relu(const Queue& queue, ConstView x, View y, const ActivationOptions& options) {
  return call(queue, relu_op, {&x, &y}, {}, options.variant);
}
Status relu_backward(const Queue& queue, ConstView x, ConstView dy, View dx,
                     const ActivationOptions& options) {
  return call(queue, relu_backward_op, {&x, &dy, &dx}, {}, options.variant);
}
Status sigmoid(const Queue& queue, ConstView x, View y, const ActivationOptions& options) {
  return call(queue, sigmoid_op, {&x, &y}, {}, options.variant);
}
Status sigmoid_backward(const Queue& queue, ConstView y, ConstView dy, View dx,
                        const ActivationOptions& options) {
  return call(queue, sigmoid_backward_op, {&y, &dy, &dx}, {}, options.variant);
}
Status tanh(const Queue& queue, ConstView x, View y, const ActivationOptions& options) {
  return call(queue, tanh_op, {&x, &y}, {}, options.variant);
}
Status tanh_backward(const Queue& queue, ConstView y, ConstView dy, View dx,
                     const ActivationOptions& options) {
  return call(queue, tanh_backward_op, {&y, &dy, &dx}, {}, options.variant);
}
Status silu(const Queue& queue, ConstView x, View y, const SiluOptions& options) {
  return call(queue, silu_op, {&x, &y}, {options.beta}, options.variant);
}
Status silu_backward(const Queue& queue, ConstView x, ConstView dy, View dx, const SiluOptions& options) {
  return call(queue, silu_backward_op, {&x, &dy, &dx}, {options.beta}, options.variant);
}
Status gelu(const Queue& queue, ConstView x, View y, const GeluOptions& options) {
  return call(queue, gelu_op, {&x, &y}, {double(options.tanh)}, options.variant);
}
Status gelu_backward(const Queue& queue, ConstView x, ConstView dy, View dx, const GeluOptions& options) {
  return call(queue, gelu_backward_op, {&x, &dy, &dx}, {double(options.tanh)}, options.variant);
}

}  // namespace rooftile
