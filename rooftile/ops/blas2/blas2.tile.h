#pragma once
// A row times a vector, and one element of an outer product, in the block language.
#include "rooftile/tile/tile.h"

namespace rooftile::kernels {
using namespace rooftile::tile;

// [row_dot]
/// One chunk of Σ a_j·x_j.
template <class Team, class T>
ROOFTILE_TILE typename Team::Real row_dot(const Team& team, const Row<const T>& a, const Row<const T>& x) {
  auto sums = team.fill(0);
  team.each(x.size, [&](auto chunk) ROOFTILE_INLINE {
    sums = fma(team.load(a, chunk), team.load(x, chunk), sums);  // past the end both are 0
  });
  return team.sum(sums);
}
// [/row_dot]

// [outer_row]
/// A row of A: alpha·(u·v) + c, where u is one number and v goes along the row. Down a column u is y_j and v
/// is x: each element is the same either way.
template <class Team, class T>
ROOFTILE_TILE void outer_row(Team team, typename Team::Real alpha, typename Team::Real u,
                             const Row<const T>& v, const Row<const T>& c, const Row<T>& a) {
  auto vector = team.hold(v, 0);
  if (!c.data)
    return team.each(a.size,
                     [&](auto chunk) ROOFTILE_INLINE { team.store(a, chunk, vector[chunk] * u * alpha); });
  auto added = team.hold(c, 0);
  team.each(a.size, [&](auto chunk) ROOFTILE_INLINE {
    team.store(a, chunk, fma(vector[chunk] * u, alpha, added[chunk]));
  });
}
// [/outer_row]
template <class Team, class T>
ROOFTILE_TILE void copy_row(Team team, const Row<const T>& c, const Row<T>& a) {
  auto row = team.hold(c, 0);
  team.each(a.size, [&](auto chunk) ROOFTILE_INLINE { team.store(a, chunk, row[chunk]); });
}

}  // namespace rooftile::kernels
