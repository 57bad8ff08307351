#include "rooftile/ops/normalize/normalize.tile.h"

namespace rooftile {
namespace {
using namespace tile;

template <bool kL1>
Status launch_forward(const Launch& launch, const NormalizeProblem& p) {
  return with_real(p.dtype, [&]<class Real>() {
    return for_row_program<Real>(launch, kL1 ? "l1_normalize" : "l2_normalize", p,
                                 kernels::Normalize<kL1, Real>{p.real<Real>(0)});
  });
}
template <bool kL1>
Status launch_backward(const Launch& launch, const NormalizeBackwardProblem& p) {
  return with_real(p.dtype, [&]<class Real>() {
    return for_row_program<Real>(launch, kL1 ? "l1_normalize_backward" : "l2_normalize_backward", p,
                                 kernels::NormalizeBackward<kL1, Real>{p.real<Real>(0)});
  });
}

}  // namespace

ROOFTILE_KERNELS(normalize) = {
    entry<launch_forward<true>>("l1_normalize", "tile"),
    entry<launch_backward<true>>("l1_normalize_backward", "tile"),
    entry<launch_forward<false>>("l2_normalize", "tile"),
    entry<launch_backward<false>>("l2_normalize_backward", "tile"),
    {},
};

}  // namespace rooftile
