#pragma once
#include "rooftile/tile/tile.h"

namespace rooftile::kernels {
using namespace rooftile::tile;

/// One row: y = x - mean(x).
template <class Team, class T>
ROOFTILE_TILE void skeleton(Team team, Row<const T> x, Row<T> y) {
  using Tile = typename Team::Tile;
  auto row = team.hold(x, 0);  // read from memory once; lanes past the end read 0

  Tile sums = team.fill(0);
  team.each(x.size, [&](auto chunk) { sums += row[chunk]; });
  const float mean = team.sum(sums) / static_cast<float>(x.size);

  team.each(x.size, [&](auto chunk) { team.store(y, chunk, row[chunk] - mean); });
}

}  // namespace rooftile::kernels
