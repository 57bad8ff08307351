#pragma once
#include "rooftile/ops/skeleton/oracle.h"

namespace rooftile::harness {

/// Operands, bytes, flops, calls and cases follow from the signatures. Beside them: the oracles, the
/// tolerance's reason, and how large huge inputs may be for sums and products to be numbers.
inline std::vector<Spec> skeleton_specs() {
  Spec forward = row_spec({.function = "skeleton",
                           .oracle = oracles<SkeletonOracle>(),
                           .reason = "a sum, a quotient, a difference and a product"});
  forward.largest_exponent = 60;
  Spec backward = row_spec({.function = "skeleton_backward",
                            .oracle = oracles<SkeletonBackwardOracle>(),
                            .reason = "a sum along a row, one down the columns, and three products",
                            .gradient_of = "skeleton"});
  backward.largest_exponent = 40;
  return {forward, backward};
}

}  // namespace rooftile::harness
