// Wrong [tail]: the mean is over the lanes that were read
#pragma once
#include "rooftile/tile/tile.h"

using namespace rooftile::tile;

/// One row: y = x · rstd · (weight + plus), rstd = 1 / √(Σ x² / N + eps).
template <class Team, class T, class Weight>
void my_rms_norm(Team team, Row<const T> x, const Weight& weight, Row<T> y, float eps, float plus) {
  using Tile = typename Team::Tile;
  float lanes = 0;
  Tile squares = team.fill(0);
  team.each(x.size, [&](auto chunk) {
    const Tile in = team.load(x, chunk);
    squares = fma(in, in, squares);
    lanes += team.sum(team.fill(1));
  });
  const float rstd = 1 / sqrt(team.sum(squares) / lanes + eps);
  team.each(x.size,
            [&](auto chunk) { team.store(y, chunk, team.load(x, chunk) * rstd * (weight(chunk) + plus)); });
}
