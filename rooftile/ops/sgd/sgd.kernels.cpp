#include "rooftile/ops/sgd/sgd.tile.h"

namespace rooftile {
namespace {
using namespace tile;

Status launch_sgd(const Launch& launch, const SgdProblem& p) {
  return for_lists<kernels::Sgd>(launch, "sgd", p);
}

}  // namespace

ROOFTILE_KERNELS(sgd) = {entry<launch_sgd>("sgd", "tile"), {}};

}  // namespace rooftile
