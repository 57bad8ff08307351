#include "rooftile/ops/adamw/adamw.tile.h"

namespace rooftile {
namespace {
using namespace tile;

Status launch_adamw(const Launch& launch, const AdamwProblem& p) {
  return for_lists<kernels::Adamw>(launch, "adamw", p);
}

}  // namespace

ROOFTILE_KERNELS(adamw) = {entry<launch_adamw>("adamw", "tile"), {}};

}  // namespace rooftile
