#include "rooftile/ops/dyt/dyt.tile.h"

namespace rooftile {
namespace {
using namespace tile;

Status launch_forward(const Launch& launch, const DytProblem& p) {
  return for_row_program(launch, "dyt", p, kernels::Dyt{});
}
Status launch_backward(const Launch& launch, const DytBackwardProblem& p) {
  return for_row_program(launch, "dyt_backward", p, kernels::DytBackward{});
}

}  // namespace

ROOFTILE_KERNELS(dyt) = {
    entry<launch_forward>("dyt", "tile"),
    entry<launch_backward>("dyt_backward", "tile"),
    {},
};

}  // namespace rooftile
