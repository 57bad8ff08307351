// Exercise rms_norm: a row over its root mean square, times a weight.
#pragma once
#include "rooftile/tile/tile.h"

using namespace rooftile::tile;

/// One row: y = x · rstd · (weight + plus), rstd = 1 / √(Σ x² / N + eps), N being x.size.
/// What you need: team.fill(value), team.each(x.size, [&](auto chunk) { … }), team.load(x, chunk),
/// weight(chunk): the weights of its columns, team.store(y, chunk, tile), team.sum(tile): over all lanes;
/// fma(a, b, c) = a·b + c, sqrt.
template <class Team, class T, class Weight>
void my_rms_norm(Team team, Row<const T> x, const Weight& weight, Row<T> y, float eps, float plus) {
  using Tile = typename Team::Tile;
  Tile squares = team.fill(0);  // of each lane
  team.each(x.size, [&](auto chunk) {
    const Tile in = team.load(x, chunk);
    // your line: add its squares
  });
  // your lines: the row's rstd, then the second pass, which writes y
}
