// Wrong [tail]: empty lanes are counted
#pragma once
#include "rooftile/tile/tile.h"

using namespace rooftile::tile;

// [welford]
/// One row: y = (x - mean) / √(variance + eps), both from one pass, without a shift: each lane keeps the
/// mean and the squares of what it has read.
template <class Team, class T>
void layer_norm_welford(Team team, Row<const T> x, Row<T> y, float eps) {
  using Tile = typename Team::Tile;
  Tile counts = team.fill(0), means = team.fill(0), squares = team.fill(0);
  team.each(x.size, [&](auto chunk) {
    const Tile in = team.load(x, chunk);
    const Tile more = counts + team.fill(1);  // an empty lane counts nothing
    const Tile before = team.only(chunk, in - means, 0);
    means = means + before / max(more, 1);  // a lane that has read nothing yet: 0 / 1
    squares = fma(before, team.only(chunk, in - means, 0), squares);
    counts = more;
  });

  // The lanes' squares are about the lanes' own means: what lies between those and the row's comes on top.
  const float each_one = 1 / static_cast<float>(x.size);
  const float pivot = team.max(means);  // near all of them, so that their differences are small
  const float mean = pivot + team.sum(counts * (means - pivot)) * each_one;
  const Tile between = means - mean;
  const float variance = team.sum(fma(counts * between, between, squares)) * each_one;
  const float rstd = 1 / sqrt(variance + eps);
  team.each(x.size, [&](auto chunk) { team.store(y, chunk, (team.load(x, chunk) - mean) * rstd); });
}
// [/welford]
