// Exercise gelu: x·Φ(x) for every float, right far below 0 too.
#pragma once
#include "rooftile/tile/tile.h"

using namespace rooftile::tile;

/// P(t): Φ(-|x|) = exp(-x²/2)·t·P(t), with t = 1/(1 + 0.35·|x|).
template <class Tile>
Tile tail_polynomial(const Tile& t) {
  Tile p = fma(t, -0x1.ddbfbep-6f, like(t, 0x1.26fdd6p-3f));
  for (float next : {-0x1.05ff08p-2f, 0x1.46539ap-3f, -0x1.7c891cp-6f, 0x1.b05e0ep-4f, 0x1.eac81cp-4f,
                     0x1.1e70ep-3f, 0x1.1df1c4p-3f})
    p = fma(p, t, like(t, next));
  return p;
}

/// What you need: tail_polynomial, abs, exp, max, select(condition, a, b); like(x, 1), a tile of ones as wide
/// as x; + - * / and < with tiles and numbers.
template <class Tile>
Tile my_gelu(const Tile& x) {
  return x;  // your lines
}
