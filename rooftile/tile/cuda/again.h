#pragma once
// Rows that few need to be read once more, from where they lie, in short loops: the registers of other rows
// are theirs alone.
#include "rooftile/tile/cuda/team.h"

namespace rooftile::tile {
inline namespace cuda {

/// Whether any team of the warp says so: all of them then come to what their threads do together.
template <class Team>
ROOFTILE_TILE bool any_of_warp(bool mine) {
  if constexpr (Team::kScope == Scope::warp || Team::kScope == Scope::any) return __any_sync(kAllLanes, mine);
  return mine;
}

struct Again {
  /// Calls body(chunk) along `size` elements.
  template <class Team, class Body>
  ROOFTILE_TILE static void each(const Team& team, std::int64_t size, Body&& body) {
    if constexpr (Team::kHoldsRows) {
      constexpr int kChunks = Team::kElements / Team::kLanes;
      const int length = static_cast<int>(size), step = team.chunk_step(), mine = team.first_of_chunk();
      ROOFTILE_UNROLL_BY(1) for (int c = 0; c < kChunks; ++c) {
        const int first = c * step + mine;
        body(Chunk{0, first, length - first});
      }
    } else {
      const std::int64_t mine = team.thread_ * Team::kLanes,
                         step = std::int64_t{team.threads_} * Team::kLanes;
      ROOFTILE_UNROLL_BY(1)
      for (std::int64_t first = 0; first < size; first += step)
        body(Chunk{0, first + mine, size - (first + mine)});
    }
  }
};
template <class Team, class Body>
ROOFTILE_TILE void each_again(const Team& team, std::int64_t size, Body&& body) {
  Again::each(team, size, body);
}
/// A chunk's elements one by one, the empty lanes 0.
template <class Team, class T>
ROOFTILE_TILE typename Team::Tile load_again(const Team&, const Row<const T>& x, const Chunk& chunk) {
  using Real = typename Team::Real;
  constexpr int kStep = Team::kReads == Access::interleaved ? kWarp : 1;
  const std::int64_t stride = may_be_strided(Team::kReads) ? x.stride : 1;
  const T* const from = x.data + chunk.first * stride;
  typename Team::Tile t;
  ROOFTILE_EACH_LANE(Team::kLanes)
  t.v[i] = i * kStep < chunk.live ? widen<Real>(from[i * kStep * stride]) : Real(0);
  return t;
}
}  // namespace cuda
}  // namespace rooftile::tile
