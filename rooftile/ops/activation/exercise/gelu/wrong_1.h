// Wrong [values]: below 0, 1 - (1 - tail) cancels
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

/// x·Φ(x); below -15 Φ is 0 in f32.
template <class Tile>
Tile my_gelu(const Tile& x) {
  const Tile t = 1 / (abs(x) * 0.35f + 1);
  const Tile tail = exp(x * x * -0.5f) * t * tail_polynomial(t);
  const Tile above = 1 - tail;
  return max(-15, x) * select(x < 0, 1 - above, above);
}
