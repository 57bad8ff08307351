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
      constexpr Access kWrites = kAccess == Access::interleaved ? kAccess : Access::aligned;
      if (sums.data)
        team.each(sums.size, [&](const Chunk& chunk) {
          store_pack<kWrites>(sums, chunk.first, chunk.live, narrowed<Real>(tiles[chunk.index]), 0, 1);
        });
    }
  }

  /// The same for a block's `teams` teams, which have one row of the workspace together: each column's sums
  /// team by team, of few columns by several threads.
  ROOFTILE_TILE
  void write_together(int teams) const {
    static_assert(Team::kHoldsRows);
    struct alignas(16) Parts {
      Real of_threads[kWarpsThreads * Team::kLanes * kChunks];
    };
    ROOFTILE_SHARED(shared, Parts);
    if (!sums.data) return;
    Real* const parts = shared.of_threads;
    const int thread = static_cast<int>(threadIdx.x), size = static_cast<int>(sums.size);
    const int width = kWarpsThreads / teams * Team::kLanes * kChunks;  // of a team's part

    __syncthreads();  // all have read what was there before
    leave(parts + thread / (kWarpsThreads / teams) * width);
    int across = kWarpsThreads;  // threads that have neighbouring columns
    while (across / 2 >= size) across /= 2;
    const int groups = kWarpsThreads / across, group = thread / across;
    for (int begin = 0; begin < size; begin += across) {
      const int column = begin + thread % across;
      __syncthreads();
      Real sum = 0;
      if (column < size)
        for (int t = group; t < teams; t += groups) sum += parts[t * width + column];
      if (groups > 1) {
        __syncthreads();
        parts[thread] = sum;
        __syncthreads();
        for (int g = 1; group == 0 && g < groups; ++g) sum += parts[g * across + column];
      }
      if (group == 0 && column < size) sums.data[column] = sum;
    }
  }

  /// The same for teams of several warps, in the block's dynamic shared memory, which is theirs by then.
  ROOFTILE_TILE
  void write_of_warps(int teams) const {
    ROOFTILE_DYNAMIC_SHARED(shared);
    if (!sums.data) return;
    Real* const parts = reinterpret_cast<Real*>(shared);
    const int thread = static_cast<int>(threadIdx.x), threads = static_cast<int>(blockDim.x);
    const int size = static_cast<int>(sums.size), width = threads / teams * Team::kLanes * kChunks;
    __syncthreads();
    leave(parts + thread / (threads / teams) * width);
    __syncthreads();
    for (int column = 4 * thread; column < size; column += 4 * threads) {
      float4 sum = *reinterpret_cast<const float4*>(parts + column);
      ROOFTILE_UNROLL_BY(1) for (int t = 1; t < teams; ++t) {
        const float4 next = *reinterpret_cast<const float4*>(parts + t * width + column);
        sum = {sum.x + next.x, sum.y + next.y, sum.z + next.z, sum.w + next.w};
      }
      *reinterpret_cast<float4*>(sums.data + column) = sum;  // rows of the workspace are whole words
    }
  }
  /// Leaves this thread's sums in its team's part of shared memory.
  ROOFTILE_TILE
  void leave(Real* mine) const {
    team.each(sums.size, [&](const Chunk& chunk) {
      const Tile& t = tiles[chunk.index];
      if constexpr (kAccess == Access::interleaved) {
        ROOFTILE_EACH_LANE(Team::kLanes) mine[chunk.first + i * kWarp] = t.v[i];
      } else {
        ROOFTILE_UNROLL for (int i = 0; i < Team::kLanes; i += 4) {
          const float4 word{t.v[i], t.v[i + 1], t.v[i + 2], t.v[i + 3]};
          *reinterpret_cast<float4*>(mine + chunk.first + i) = word;
        }
      }
    });
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
