#include "rooftile/ops/activation/activation.tile.h"

namespace rooftile {
namespace {
using namespace tile;

ROOFTILE_LANES_1(relu, x, kernels::relu(x));
ROOFTILE_LANES_2(relu_backward, x, dy, select(x <= 0, like(dy, 0), dy));  // a product would make 0·∞ of it
ROOFTILE_LANES_1(sigmoid, x, kernels::sigmoid(x));
ROOFTILE_LANES_2(sigmoid_backward, y, dy, (dy * (y * (1 - y))));
ROOFTILE_LANES_1(tanh, x, kernels::tanh(x));
ROOFTILE_LANES_2(tanh_backward, y, dy, (dy * fma(-y, y, like(y, 1))));
ROOFTILE_LANES_1(silu, x, kernels::silu(x, option));
ROOFTILE_LANES_2(silu_backward, x, dy, (dy * kernels::silu_slope(x, option)));
ROOFTILE_LANES_1(gelu, x, kernels::gelu_erf(x));
ROOFTILE_LANES_1(gelu_tanh, x, kernels::gelu_tanh(x));
ROOFTILE_LANES_2(gelu_backward, x, dy, (dy * kernels::gelu_erf_slope(x)));
ROOFTILE_LANES_2(gelu_tanh_backward, x, dy, (dy * kernels::gelu_tanh_slope(x)));

}  // namespace

ROOFTILE_KERNELS(activation) = {kLaneEntry<relu>,
                                kLaneEntry<relu_backward>,
                                kLaneEntry<sigmoid>,
                                kLaneEntry<sigmoid_backward>,
                                kLaneEntry<tanh>,
                                kLaneEntry<tanh_backward>,
                                kLaneEntry<silu>,
                                kLaneEntry<silu_backward>,
                                kLaneEntry<gelu, gelu_tanh>,
                                kLaneEntry<gelu_backward, gelu_tanh_backward>,
                                {}};

}  // namespace rooftile
