#pragma once
// Codes without scales, for functions that multiply by them elsewhere (attention_scaled). Nothing is
// validated: that was done by the function's own signature.
#include "rooftile/ops/quantize/quantize.h"

namespace rooftile::detail {

/// y ← the numbers that codes stand for, y as codes. Each of f8e4m3 and f8e5m2 is one of f32, f16 and bf16.
Status numbers_of_codes(const Queue& queue, const ConstView& codes, const View& y);

}  // namespace rooftile::detail
