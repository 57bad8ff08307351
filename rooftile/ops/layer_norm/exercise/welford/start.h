// Exercise welford: layer norm that takes mean and variance from one pass over the row.
#pragma once
#include "rooftile/tile/tile.h"

using namespace rooftile::tile;

/// One row: y = (x - mean) / √(variance + eps), the variance being the mean of (x - mean)².
/// What you need: team.fill(value), team.each(x.size, [&](auto chunk) { … }), team.load(x, chunk),
/// team.store(y, chunk, tile), team.only(chunk, tile, other): `other` in lanes past the row's end;
/// team.max(tile) and team.sum(tile): over all lanes; max, fma, sqrt.
template <class Team, class T>
void layer_norm_welford(Team team, Row<const T> x, Row<T> y, float eps) {
  using Tile = typename Team::Tile;
  Tile counts = team.fill(0), means = team.fill(0), squares = team.fill(0);  // of each lane
  team.each(x.size, [&](auto chunk) {
    const Tile in = team.load(x, chunk);
    // your lines: one pass that keeps all three
  });
  // your lines: from the lanes' means and squares to the row's, then the second pass, which writes y
}
