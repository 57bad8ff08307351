#include "rooftile/ops/activation/activation.tile.h"

namespace rooftile {
namespace {
using namespace tile;

/// f and f' of the gate.
struct GeluErf {
  template <Lanes X>
  ROOFTILE_TILE auto value(const X& x) const {
    return kernels::gelu_erf(x);
  }
  template <Lanes X>
  ROOFTILE_TILE auto slope(const X& x) const {
    return kernels::gelu_erf_slope(x);
  }
};
struct GeluTanh {
  template <Lanes X>
  ROOFTILE_TILE auto value(const X& x) const {
    return kernels::gelu_tanh(x);
  }
  template <Lanes X>
  ROOFTILE_TILE auto slope(const X& x) const {
    return kernels::gelu_tanh_slope(x);
  }
};
struct Silu {
  float beta;
  template <Lanes X>
  ROOFTILE_TILE auto value(const X& x) const {
    return kernels::silu(x, beta);
  }
  template <Lanes X>
  ROOFTILE_TILE auto slope(const X& x) const {
    return kernels::silu_slope(x, beta);
  }
};

// [gated]
/// y = f(gate)·up.
template <class F>
struct Gated {
  F f;
  template <Lanes X>
  ROOFTILE_TILE auto operator()(const X& gate, const X& up) const {
    return f.value(gate) * up;
  }
};
// [/gated]
/// dgate = dy·up·f'(gate), dup = dy·f(gate). The product of the inputs comes first: up·f'(gate) may be
/// subnormal, and a large dy would show the digits that it lost.
template <class F>
struct GatedBackward {
  F f;
  template <Lanes X>
  ROOFTILE_TILE Pair<X> operator()(const X& gate, const X& up, const X& dy) const {
    return {dy * up * f.slope(gate), dy * f.value(gate)};
  }
};

template <class F>
Status forward(const Launch& launch, const ElementsProblem<3>& p, F f) {
  return for_lanes<2>(launch, "gated", p, Gated<F>{f});
}
template <class F>
Status backward(const Launch& launch, const ElementsProblem<5>& p, F f) {
  return for_lanes<3>(launch, "gated_backward", p, GatedBackward<F>{f});
}

Status launch_geglu(const Launch& launch, const ElementsProblem<3>& p) {
  return p.flag(0) ? forward(launch, p, GeluTanh{}) : forward(launch, p, GeluErf{});
}
Status launch_geglu_backward(const Launch& launch, const ElementsProblem<5>& p) {
  return p.flag(0) ? backward(launch, p, GeluTanh{}) : backward(launch, p, GeluErf{});
}
Status launch_swiglu(const Launch& launch, const ElementsProblem<3>& p) {
  return forward(launch, p, Silu{static_cast<float>(p.options[0])});
}
Status launch_swiglu_backward(const Launch& launch, const ElementsProblem<5>& p) {
  return backward(launch, p, Silu{static_cast<float>(p.options[0])});
}

}  // namespace

ROOFTILE_KERNELS(gated) = {
    entry<launch_geglu>("geglu", "tile"),
    entry<launch_geglu_backward>("geglu_backward", "tile"),
    entry<launch_swiglu>("swiglu", "tile"),
    entry<launch_swiglu_backward>("swiglu_backward", "tile"),
    {},
};

}  // namespace rooftile
