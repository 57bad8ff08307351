#include "rooftile/ops/activation/activation.tile.h"

namespace rooftile {
namespace {
using namespace tile;
using Forward = ElementsProblem<2>;   // y, x
using Backward = ElementsProblem<3>;  // dx, x or y, dy

// A lane function as an object, and one that is multiplied by dy. Structs: nvcc takes no lambda of a template
// from host code.
#define ROOFTILE_LANES(Name, expression)                           \
  struct Name {                                                    \
    float beta = 0; /* silu's */                                   \
    template <Lanes X>                                             \
    ROOFTILE_TILE auto operator()(const X& x) const {              \
      return expression;                                           \
    }                                                              \
    template <Lanes X>                                             \
    ROOFTILE_TILE auto operator()(const X& x, const X& dy) const { \
      return dy * (expression);                                    \
    }                                                              \
  }
ROOFTILE_LANES(Relu, kernels::relu(x));
ROOFTILE_LANES(Sigmoid, kernels::sigmoid(x));
ROOFTILE_LANES(SigmoidSlope, x*(1 - x));  // of y
ROOFTILE_LANES(Tanh, kernels::tanh(x));
ROOFTILE_LANES(TanhSlope, fma(-x, x, like(x, 1)));  // of y
ROOFTILE_LANES(Silu, kernels::silu(x, beta));
ROOFTILE_LANES(SiluSlope, kernels::silu_slope(x, beta));
ROOFTILE_LANES(GeluErf, kernels::gelu_erf(x));
ROOFTILE_LANES(GeluErfSlope, kernels::gelu_erf_slope(x));
ROOFTILE_LANES(GeluTanh, kernels::gelu_tanh(x));
ROOFTILE_LANES(GeluTanhSlope, kernels::gelu_tanh_slope(x));
#undef ROOFTILE_LANES

/// dy where x > 0: a product would make 0·∞ of it.
struct ReluBackward {
  template <Lanes X>
  ROOFTILE_TILE auto operator()(const X& x, const X& dy) const {
    return select(x <= 0, like(dy, 0), dy);
  }
};

template <class F>
Status launch_forward(const Launch& launch, const Forward& p) {
  return for_lanes<1>(launch, "activation", p, F{static_cast<float>(p.options[0])});
}
template <class F>
Status launch_backward(const Launch& launch, const Backward& p) {
  return for_lanes<2>(launch, "activation_backward", p, F{static_cast<float>(p.options[0])});
}
Status launch_relu_backward(const Launch& launch, const Backward& p) {
  return for_lanes<2>(launch, "relu_backward", p, ReluBackward{});
}
Status launch_gelu(const Launch& launch, const Forward& p) {
  return p.flag(0) ? launch_forward<GeluTanh>(launch, p) : launch_forward<GeluErf>(launch, p);
}
Status launch_gelu_backward(const Launch& launch, const Backward& p) {
  return p.flag(0) ? launch_backward<GeluTanhSlope>(launch, p) : launch_backward<GeluErfSlope>(launch, p);
}

}  // namespace

ROOFTILE_KERNELS(activation) = {
    entry<launch_forward<Relu>>("relu", "tile"),
    entry<launch_relu_backward>("relu_backward", "tile"),
    entry<launch_forward<Sigmoid>>("sigmoid", "tile"),
    entry<launch_backward<SigmoidSlope>>("sigmoid_backward", "tile"),
    entry<launch_forward<Tanh>>("tanh", "tile"),
    entry<launch_backward<TanhSlope>>("tanh_backward", "tile"),
    entry<launch_forward<Silu>>("silu", "tile"),
    entry<launch_backward<SiluSlope>>("silu_backward", "tile"),
    entry<launch_gelu>("gelu", "tile"),
    entry<launch_gelu_backward>("gelu_backward", "tile"),
    {},
};

}  // namespace rooftile
