#include "rooftile/ops/activation/activation.tile.h"

namespace rooftile {
namespace {
using namespace tile;

// [gated]
/// y = f(gate)·up.
ROOFTILE_LANES_2(geglu, gate, up, (kernels::gelu_erf(gate) * up));
ROOFTILE_LANES_2(geglu_tanh, gate, up, (kernels::gelu_tanh(gate) * up));
ROOFTILE_LANES_2(swiglu, gate, up, (kernels::silu(gate, option) * up));

/// dgate = dy·up·f'(gate), dup = dy·f(gate). The product of the inputs comes first: up·f'(gate) may be
/// subnormal, and a large dy would show the digits that it lost.
template <class X>
ROOFTILE_TILE Pair<X> gated_backward(const X& up, const X& dy, const X& value, const X& slope) {
  return {dy * up * slope, dy * value};
}
// [/gated]
ROOFTILE_LANES_3(geglu_backward, gate, up, dy,
                 gated_backward(up, dy, kernels::gelu_erf(gate), kernels::gelu_erf_slope(gate)));
ROOFTILE_LANES_3(geglu_tanh_backward, gate, up, dy,
                 gated_backward(up, dy, kernels::gelu_tanh(gate), kernels::gelu_tanh_slope(gate)));
ROOFTILE_LANES_3(swiglu_backward, gate, up, dy,
                 gated_backward(up, dy, kernels::silu(gate, option), kernels::silu_slope(gate, option)));

}  // namespace

ROOFTILE_KERNELS(gated) = {kLaneEntry<geglu, geglu_tanh>,
                           kLaneEntry<geglu_backward, geglu_tanh_backward, 2>,
                           kLaneEntry<swiglu>,
                           kLaneEntry<swiglu_backward, swiglu_backward, 2>,
                           {}};

}  // namespace rooftile
