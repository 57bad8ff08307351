// Wrong [eps]: eps outside the root
#pragma once
#include "rooftile/tile/tile.h"

using namespace rooftile::tile;

/// One row: y = x · rstd · (weight + plus), rstd = 1 / √(Σ x² / N + eps).
template <class Team, class T, class Weight>
void my_rms_norm(Team team, Row<const T> x, const Weight& weight, Row<T> y, float eps, float plus) {
  using Tile = typename Team::Tile;
  Tile squares = team.fill(0);
  team.each(x.size, [&](auto chunk) {
    const Tile in = team.load(x, chunk);
    squares = fma(in, in, squares);
  });
  const float mean = team.sum(squares) / static_cast<float>(x.size);
  const float rstd = 1 / (sqrt(mean) + eps);
  team.each(x.size,
            [&](auto chunk) { team.store(y, chunk, team.load(x, chunk) * rstd * (weight(chunk) + plus)); });
}
