#pragma once
#include "rooftile/tile/cuda/memory.h"

namespace rooftile::tile {
inline namespace cuda {

/// Column accumulators of a team: sums over a block of rows, one for each column, in registers; write()
/// brings them to the block's row of the workspace, where those of rows that are not held are all the time.
template <class Team, int kChunks, Access kAccess>
struct ColumnSums {
  using Real = typename Team::Real;
  using Tile = typename Team::Tile;
  const Team& team;
  Row<Real> sums;
  Tile tiles[Team::kHoldsRows ? kChunks : 1];

  ROOFTILE_TILE
  void add(const Chunk& chunk, const Tile& t, bool first) {
    set(chunk, starts_with(first) ? t : get(chunk) + t);
  }
  ROOFTILE_TILE
  void add_product(const Chunk& chunk, const Tile& a, const Tile& b, bool first) {
    set(chunk, starts_with(first) ? a * b : fma(a, b, get(chunk)));
  }
  ROOFTILE_TILE
  void write() const {
    if constexpr (Team::kHoldsRows) {
      // Rows of the workspace are whole words, whatever those of the operands are.
      constexpr Access kWrites = kAccess == Access::strided ? kAccess : Access::aligned;
      if (sums.data)
        team.each(sums.size, [&](const Chunk& chunk) {
          store_pack<kWrites>(sums, chunk.first, chunk.live, narrowed<Real>(tiles[chunk.index]), 0, 1);
        });
    }
  }

  /// In registers they start with 0: a choice for each element would cost as much as the addition.
  ROOFTILE_TILE
  static bool starts_with(bool first) { return !Team::kHoldsRows && first; }
  ROOFTILE_TILE
  Tile get(const Chunk& chunk) const {
    if constexpr (Team::kHoldsRows)
      return tiles[chunk.index];
    else
      return Team::load(Row<const Real>{sums.data, sums.size}, chunk);
  }
  ROOFTILE_TILE
  void set(const Chunk& chunk, const Tile& t) {
    if constexpr (Team::kHoldsRows)
      tiles[chunk.index] = t;
    else
      team.store(sums, chunk, t);
  }
};

}  // namespace cuda
}  // namespace rooftile::tile
