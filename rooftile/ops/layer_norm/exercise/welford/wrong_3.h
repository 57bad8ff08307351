// Wrong [offsets]: E[x²] - E[x]²
#pragma once
#include "rooftile/tile/tile.h"

using namespace rooftile::tile;

template <class Team, class T>
void layer_norm_welford(Team team, Row<const T> x, Row<T> y, float eps) {
  using Tile = typename Team::Tile;
  Tile sums = team.fill(0), squares = team.fill(0);
  team.each(x.size, [&](auto chunk) {
    const Tile in = team.only(chunk, team.load(x, chunk), 0);
    sums = sums + in;
    squares = fma(in, in, squares);
  });
  const float each_one = 1 / static_cast<float>(x.size), mean = team.sum(sums) * each_one;
  const float rstd = 1 / sqrt(team.sum(squares) * each_one - mean * mean + eps);
  team.each(x.size, [&](auto chunk) { team.store(y, chunk, (team.load(x, chunk) - mean) * rstd); });
}
