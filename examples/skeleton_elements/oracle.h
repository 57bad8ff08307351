#pragma once
#include "rooftile/harness/lane_oracle.h"

namespace rooftile::harness {

/// y = x/(1 + |x|), in any scalar.
constexpr auto kSkeletonOracle = []<class S>(const Case&, const S& x) { return x / (S(1) + max(x, -x)); };

}  // namespace rooftile::harness
