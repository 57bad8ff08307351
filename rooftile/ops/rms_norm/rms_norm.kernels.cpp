#include "rooftile/ops/rms_norm/rms_norm.tile.h"

namespace rooftile {
namespace {
using namespace tile;

Status launch_forward(const Launch& launch, const RmsNormProblem& p) {
  return for_row_program(launch, "rms_norm", p, kernels::RmsNorm{p.real(0), p.real(1)});
}
Status launch_backward(const Launch& launch, const RmsNormBackwardProblem& p) {
  return for_row_program(launch, "rms_norm_backward", p, kernels::RmsNormBackward{p.real(0)});
}

}  // namespace

ROOFTILE_KERNELS(rms_norm) = {
    entry<launch_forward>("rms_norm", "tile"),
    entry<launch_backward>("rms_norm_backward", "tile"),
    {},
};

}  // namespace rooftile
