// Wrong [tail]: two mistakes; empty lanes add to the sum, and -inf - -inf
#pragma once
#include "rooftile/tile/tile.h"

using namespace rooftile::tile;

template <class Team, class T>
void softmax_one_pass(Team team, Row<const T> x, Row<T> y, const SplitScale& s) {
  using Tile = typename Team::Tile;
  Tile maxima = team.fill(-kInfinity), sums = team.fill(0);
  team.each(x.size, [&](auto chunk) {
    const Tile in = team.load(x, chunk) * s.unit, larger = max(maxima, in);
    sums = sums * exp((maxima - larger) * s.rest) + exp((in - larger) * s.rest);
    maxima = larger;
  });
  const auto row_max = team.max(maxima);
  const auto sum = team.sum(sums * exp((maxima - row_max) * s.rest));
  team.each(x.size, [&](auto chunk) {
    team.store(y, chunk, exp((team.load(x, chunk) * s.unit - row_max) * s.rest) / sum);
  });
}
