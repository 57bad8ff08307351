// Wrong [nan]: -inf - -inf
#pragma once
#include "rooftile/tile/tile.h"

using namespace rooftile::tile;

// [one_pass]
/// One row: y = exp(s·x - max) / Σ exp(s·x - max), its maximum and its sum from one pass. `s` gives
/// s·x - max as (unit·x - row_max)·rest.
template <class Team, class T>
void softmax_one_pass(Team team, Row<const T> x, Row<T> y, const SplitScale& s) {
  using Tile = typename Team::Tile;
  Tile maxima = team.fill(-kInfinity);  // the largest unit·x of each lane
  Tile sums = team.fill(0);             // Σ exp((unit·x - maxima)·rest) over what the lane has read
  team.each(x.size, [&](auto chunk) {
    const Tile in = team.load(x, chunk);
    const Tile larger = max(maxima, team.only(chunk, in * s.unit, -kInfinity));
    // A lane that has read nothing but -inf: -inf - -inf would be NaN, while exp(-inf - 0) is the 0 it should
    // be.
    const Tile shift = larger;
    const Tile here = team.only(chunk, exp(fma(in, s.unit, -shift) * s.rest), 0);
    sums = fma(sums, exp((maxima - shift) * s.rest), here);
    maxima = larger;
  });

  // The lanes' sums belong to different maxima: first to the row's, then add.
  const float row_max = team.max(maxima);
  const float shift = row_max == -kInfinity ? 0 : row_max;
  const float inverse = 1 / team.sum(sums * exp((maxima - shift) * s.rest));
  team.each(x.size, [&](auto chunk) {
    team.store(y, chunk, exp(fma(team.load(x, chunk), s.unit, -row_max) * s.rest) * inverse);
  });
}
// [/one_pass]
