#pragma once
// The exercise of this folder's README, solved. To try it yourself, empty the body, and run
//   ctest --preset release -R softmax_exercise
#include "rooftile/tile/tile.h"

namespace rooftile::exercise {
using namespace rooftile::tile;

// [one_pass]
/// One row: y = exp(s·x - max) / Σ exp(s·x - max), its maximum and its sum from one walk. `s` gives s·x - max
/// as (unit·x - peak)·rest.
template <class Team, class T>
ROOFTILE_TILE void softmax_one_pass(Team team, Row<const T> x, Row<T> y, const SplitScale& s) {
  using Tile = typename Team::Tile;
  Tile peaks = team.fill(-kInfinity);  // the largest unit·x that each lane has met
  Tile sums = team.fill(0);            // Σ exp((unit·x - peaks)·rest) over what it has met
  team.each(x.size, [&](auto chunk) {
    const Tile in = team.load(x, chunk);
    const Tile peak = max(peaks, team.only(chunk, in * s.unit, -kInfinity));
    // A lane that has met nothing but -inf: -inf - -inf would be NaN, while exp(-inf - 0) is the 0 it should
    // be.
    const Tile shift = select(peak == -kInfinity, team.fill(0), peak);
    const Tile here = team.only(chunk, exp(fma(in, s.unit, -shift) * s.rest), 0);
    sums = fma(sums, exp((peaks - shift) * s.rest), here);
    peaks = peak;
  });

  // The lanes' sums belong to different peaks: first to the row's, then add.
  const float peak = team.max(peaks);
  const float shift = peak == -kInfinity ? 0 : peak;
  const float inverse = 1 / team.sum(sums * exp((peaks - shift) * s.rest));
  team.each(x.size, [&](auto chunk) {
    team.store(y, chunk, exp(fma(team.load(x, chunk), s.unit, -peak) * s.rest) * inverse);
  });
}
// [/one_pass]

}  // namespace rooftile::exercise
