#pragma once
// A block of 256 elements by itself: its means are widened, one step of AdamW is made, and the new means are
// rounded to the nearest numbers of their maps times the new largest ones. As every machine rounds each
// operation alike and none is fused, codes are the same everywhere: one last bit of a mean can decide a code.
#include "rooftile/ops/adamw/adamw.tile.h"
#include "rooftile/ops/adamw_8bit/adamw_8bit.problem.h"

namespace rooftile::kernels {
using namespace rooftile::tile;

// [element]
template <class X>
struct Adamw8bitElement {
  X p, m, v;
};
/// As adamw_mean, by a product and a sum.
template <class X>
ROOFTILE_TILE X adamw_8bit_mean(const AdamwStep::Mean& s, const X& mean, const X& x) {
  return s.share < 0.5f ? mean + (x - mean) * s.share : x + (mean - x) * s.beta;
}
template <class X>
ROOFTILE_TILE Adamw8bitElement<X> adamw_8bit_element(const AdamwStep& s, Adamw8bitElement<X> x, X g) {
  g = g * s.gradient_factor;
  const X m = adamw_8bit_mean(s.m, x.m, g), v = adamw_8bit_mean(s.v, x.v, X(g * g)), none = like(g, 0.f);
  const X p = x.p - (x.p * s.decay + m * s.size / (sqrt(v) * s.root_factor + s.eps));
  const auto finite = X((m - m) + (v - v)) <= none;  // else one of them is a NaN
  return {select(finite, p, x.p), select(finite, m, none), select(finite, v, none)};
}
// [/element]

}  // namespace rooftile::kernels
