// Wrong [nan]: exp(2x) overflows
#pragma once
#include "rooftile/tile/tile.h"

using namespace rooftile::tile;

/// (1 - e)/(1 + e) with the sign of x, e = exp(-2|x|); where that would cancel, below 0.55, x + x³·P(x²).
template <class Tile>
Tile my_tanh(const Tile& x) {
  const Tile size = abs(x), square = x * x;
  const Tile e = exp(size * -2);
  const Tile up = exp(x * 2), far = (up - 1) / (up + 1);
  Tile p = fma(square, 0x1.0d4f94p-6f, like(x, -0x1.af7ca4p-5f));
  p = fma(p, square, 0x1.10cefp-3f);
  p = fma(p, square, -0x1.555452p-2f);
  const Tile near = fma(p * square, x, x);
  return select(size < 0.55f, near, far);
}
