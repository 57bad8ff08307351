#pragma once
#include "rooftile/harness/signature_spec.h"
#include "rooftile/ops/skeleton/oracle.h"

namespace rooftile::harness {

/// Hostile shapes, strides and values, cost and tolerance follow from the signature and the oracle.
inline std::vector<Spec> skeleton_specs() { return {lanes_spec<1, kSkeletonOracle>("skeleton")}; }

}  // namespace rooftile::harness
