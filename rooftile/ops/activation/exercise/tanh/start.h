// Exercise tanh: for every float, without overflow and without cancelling near 0.
#pragma once
#include "rooftile/tile/tile.h"

using namespace rooftile::tile;

/// What you need: abs, exp, fma(a, b, c) = a·b + c, select(condition, a, b), like(x, 1): a tile of ones;
/// + - * / and < with tiles and numbers.
template <class Tile>
Tile my_tanh(const Tile& x) {
  return x;  // your lines
}
