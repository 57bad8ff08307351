#include "rooftile/ops/blas1/blas1.problem.h"
#include "rooftile/ops/blas1/blas1.tile.h"

namespace rooftile {
namespace {
using namespace tile;

template <int kInputs, int kOperands, class F>
Status for_reals(const Launch& launch, const char* name, const ElementsProblem<kOperands>& p, const F& f) {
  return for_lanes<kInputs, double, float, f16, bf16>(launch, name, p, f);
}

Status launch_swap(const Launch& launch, const ElementsProblem<4>& p) {
  return for_reals<2>(launch, "swap", p, kernels::Swap{});
}
Status launch_scal(const Launch& launch, const ElementsProblem<2>& p) {
  return for_reals<1>(launch, "scal", p, kernels::Scale{p.options[0]});
}

/// A factor of 0 means that its operand is not read.
Status launch_axpby(const Launch& launch, const AxpbyProblem& p) {
  const double alpha = axpby_factor(p, 0), beta = axpby_factor(p, 1);
  if (alpha != 0 && beta != 0) return for_reals<2>(launch, "axpby", p, kernels::Axpby{alpha, beta});
  if (alpha != 0) return for_reals<1>(launch, "axpby", p.only<0, 1>(), kernels::Scale{alpha});
  if (beta != 0) return for_reals<1>(launch, "axpby", p.only<0, 2>(), kernels::Scale{beta});
  return for_reals<1>(launch, "axpby", p.only<0, 2>(), kernels::Zero{});
}

Status launch_dot(const Launch& launch, const DotProblem& p) {
  return reduce<kernels::Dot>(launch, "dot", p);
}
Status launch_nrm2(const Launch& launch, const ReductionProblem<1>& p) {
  return reduce<kernels::Nrm2>(launch, "nrm2", p);
}
Status launch_asum(const Launch& launch, const ReductionProblem<1>& p) {
  return reduce<kernels::Asum>(launch, "asum", p);
}

}  // namespace

ROOFTILE_KERNELS(blas1) = {
    entry<launch_swap>("swap", "tile"),
    entry<launch_scal>("scal", "tile"),
    entry<launch_axpby>("axpby", "tile"),
    entry<launch_dot>("dot", "tile"),
    entry<launch_nrm2>("nrm2", "tile"),
    entry<launch_asum>("asum", "tile"),
    {},
};

}  // namespace rooftile
