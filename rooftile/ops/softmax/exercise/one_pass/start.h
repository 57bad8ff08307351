// Exercise one_pass: softmax that takes the maximum and the sum from one pass over the row.
#pragma once
#include "rooftile/tile/tile.h"

using namespace rooftile::tile;

/// One row: y = exp(s·x - max) / Σ exp(s·x - max). `s` gives s·x - max as (s.unit * x - row_max) * s.rest.
/// What you need: team.fill(value), team.each(x.size, [&](auto chunk) { … }), team.load(x, chunk),
/// team.store(y, chunk, tile), team.only(chunk, tile, other): `other` in lanes past the row's end;
/// team.max(tile) and team.sum(tile): one float over all lanes; kInfinity. Of tiles, lane by lane: max, exp,
/// fma(a, b, c) = a·b + c, select(a == b, this, that).
template <class Team, class T>
void softmax_one_pass(Team team, Row<const T> x, Row<T> y, const SplitScale& s) {
  using Tile = typename Team::Tile;
  Tile maxima = team.fill(-kInfinity);  // the largest s.unit * x of each lane
  Tile sums = team.fill(0);             // and its sum of exponentials
  team.each(x.size, [&](auto chunk) {
    const Tile in = team.load(x, chunk);
    // your lines: one pass that keeps both
  });
  // your lines: from the lanes' maxima and sums to the row's, then the second pass, which writes y
}
