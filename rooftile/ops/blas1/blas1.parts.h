#pragma once
// A copy that rounds, for functions that add up in f32 what they give in fewer bits (linear_cross_entropy).
// Nothing is validated: that was done by the function's own signature.
#include "rooftile/ops/blas1/blas1.h"

namespace rooftile::detail {

/// y ← x, an f32 of y's shape, rounded to y's dtype, f16 or bf16: to the nearest, ties to even.
Status round_to(const Queue& queue, const ConstView& x, const View& y);

}  // namespace rooftile::detail
