#include "rooftile/ops/dropout/dropout.tile.h"

namespace rooftile {
namespace {
using namespace tile;

Status launch_dropout(const Launch& launch, const DropoutProblem& p) {
  const kernels::DropoutStart f{p.keep, p.numbers};
  if (p.adds_residual) return for_lanes<2>(launch, "dropout", p.elements, f);
  return for_lanes<1>(launch, "dropout", p.elements.only<0, 1>(), f);
}

}  // namespace

ROOFTILE_KERNELS(dropout) = {
    entry<launch_dropout>("dropout", "tile"),
    entry<launch_dropout>("dropout_backward", "tile"),
    {},
};

}  // namespace rooftile
