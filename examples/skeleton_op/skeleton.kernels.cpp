#include "rooftile/ops/skeleton/skeleton.tile.h"

namespace rooftile {
namespace {
using namespace tile;

Status launch_forward(const Launch& launch, const SkeletonProblem& p) {
  return for_row_program(launch, "skeleton", p, kernels::Skeleton{});
}
Status launch_backward(const Launch& launch, const SkeletonBackwardProblem& p) {
  return for_row_program(launch, "skeleton_backward", p, kernels::SkeletonBackward{});
}

}  // namespace

ROOFTILE_KERNELS(skeleton) = {
    entry<launch_forward>("skeleton", "tile"),
    entry<launch_backward>("skeleton_backward", "tile"),
    {},
};

}  // namespace rooftile
