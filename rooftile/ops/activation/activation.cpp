#include "rooftile/ops/activation/activation.h"

#include "rooftile/core/elements.h"

namespace rooftile {

static constexpr Signature::Types kActivationTypes =
    Signature::Types{'T', {DType::f32, DType::f16, DType::bf16}}.with_on_cpus(DType::f64);

// f, y = f(x), and its backward, dx from dy and `given`, which is x or y: their signatures, ops and calls.
// `option`: the signature's, whose value the last argument is.
#define ROOFTILE_ACTIVATION(f, given, Options, option, ...)                                                 \
  static constexpr Signature f##_signature{                                                                 \
      #f, {kActivationTypes}, {input("x", 'T', "..."), output("y", 'T', "...", "x")}, {option}};            \
  static constexpr Signature f##_backward_signature{                                                        \
      #f "_backward",                                                                                       \
      {kActivationTypes},                                                                                   \
      {input(#given, 'T', "..."), input("dy", 'T', "..."), output("dx", 'T', "...", #given " dy")},         \
      {option}};                                                                                            \
  extern const Op f##_op = elements_op<f##_signature>(#f, "forward");                                       \
  extern const Op f##_backward_op = elements_op<f##_backward_signature>(#f, "backward");                    \
  Status f(const Queue& queue, ConstView x, View y, const Options& options) {                               \
    return call(queue, f##_op, {&x, &y}, {__VA_ARGS__}, options.variant);                                   \
  }                                                                                                         \
  Status f##_backward(const Queue& queue, ConstView given, ConstView dy, View dx, const Options& options) { \
    return call(queue, f##_backward_op, {&given, &dy, &dx}, {__VA_ARGS__}, options.variant);                \
  }
ROOFTILE_ACTIVATION(relu, x, ActivationOptions, {})
ROOFTILE_ACTIVATION(sigmoid, y, ActivationOptions, {})
ROOFTILE_ACTIVATION(tanh, y, ActivationOptions, {})
ROOFTILE_ACTIVATION(silu, x, SiluOptions, real("beta", 1), options.beta)
ROOFTILE_ACTIVATION(gelu, x, GeluOptions, flag("tanh"), double(options.tanh))
#undef ROOFTILE_ACTIVATION

extern const Op* const activation_ops[] = {&relu_op, &relu_backward_op, &sigmoid_op, &sigmoid_backward_op,
                                           &tanh_op, &tanh_backward_op, &silu_op,    &silu_backward_op,
                                           &gelu_op, &gelu_backward_op, nullptr};

}  // namespace rooftile
