#include "rooftile/ops/rms_norm/rms_norm.tile.h"

namespace rooftile {
namespace {
using namespace tile;

Status launch_forward(const Launch& launch, const RmsNormProblem& p) {
  return with_real(p.dtype, [&]<class Real>() {
    return for_row_program<Real>(launch, "rms_norm", p,
                                 kernels::RmsNorm<Real>{p.real<Real>(0), p.real<Real>(1)});
  });
}
Status launch_backward(const Launch& launch, const RmsNormBackwardProblem& p) {
  return with_real(p.dtype, [&]<class Real>() {
    return for_row_program<Real>(launch, "rms_norm_backward", p,
                                 kernels::RmsNormBackward<Real>{p.real<Real>(0)});
  });
}

}  // namespace

ROOFTILE_KERNELS(rms_norm) = {
    entry<launch_forward>("rms_norm", "tile"),
    entry<launch_backward>("rms_norm_backward", "tile"),
    {},
};

}  // namespace rooftile
