#pragma once
// Where a GPU's teams have a vector over the columns, as a weight: in memory, in a stage, in shared memory or
// in registers.
#include "rooftile/core/row_problem.h"
#include "rooftile/tile/cuda/again.h"
#include "rooftile/tile/cuda/launch.h"

namespace rooftile::tile {
inline namespace cuda {

/// In memory; without data, `absent` throughout. kAhead: it may be read before its turn.
template <class W, bool kAhead>
struct GlobalVector {
  Row<const W> row;
  float absent;
  template <class Team>
  ROOFTILE_TILE void ask(const Team&) const {}
  template <class Team>
  ROOFTILE_TILE typename Team::Tile load(const Team& team, const tile::Chunk& chunk) const {
    return widened<float>(pack(team, chunk));
  }
  template <class Team>
  ROOFTILE_TILE Pack<W, Team::kLanes> pack(const Team&, const tile::Chunk& chunk) const {
    if (row.data)
      return load_pack<Team::kReads, Team::kLanes, kAhead>(row, chunk.first, chunk.live, narrow<W>(absent));
    Pack<W, Team::kLanes> pack;
    ROOFTILE_UNROLL for (int i = 0; i < Team::kLanes; ++i) pack.set(i, narrow<W>(absent));
    return pack;
  }
};
/// The same in a stage, asked for behind the first row's loads, or each one's, which would wait for these
/// instructions, and not when the sums are known (bf16 8192x4096, H200: 40.4 µs, so 40.0; 512x131072: before
/// the first row 81, so 79.5; layer_norm_backward needs it with the first row, and asks before);
template <class W, class Team>
struct RingVector {
  Row<const W> row;
  float absent;
  template <bool kAhead>
  ROOFTILE_TILE RingVector(const GlobalVector<W, kAhead>& vector, int number)
      : row(vector.row), absent(vector.absent) {
    row.stage = Team::kStages + number;
  }
  /// Once where rows stream, else with each.
  ROOFTILE_TILE void ask_once(const Team& team) const {
    if constexpr (Team::kStreams) bring(team);
  }
  ROOFTILE_TILE void ask(const Team& team) const {
    if constexpr (!Team::kStreams) bring(team);
  }
  ROOFTILE_TILE void bring(const Team& team) const {
    if (row.data)
      team.ask_kept(row);
    else
      team.keep(row, absent);
  }
  ROOFTILE_TILE typename Team::Tile load(const Team& team, const tile::Chunk& chunk) const {
    if (chunk.index == 0) team.wait_kept();
    return widened<float>(team.arrived(row, chunk, absent));
  }
};
/// or where it is staged, as floats. Its pointer is never null: nvcc would not know that it leads to shared
/// memory.
struct StagedVector {
  const float* all;
  ROOFTILE_TILE StagedVector(const Staging& staging, int operand) : all(staging.vector(operand)) {}
  template <class Team>
  ROOFTILE_TILE void ask(const Team&) const {}
  template <class Team>
  ROOFTILE_TILE typename Team::Tile load(const Team&, const tile::Chunk& chunk) const {
    using P = Pack<float, Team::kLanes>;
    P pack{};
    const auto* words = reinterpret_cast<const uint4*>(all + chunk.first);
    if (chunk.live > 0) {
      ROOFTILE_UNROLL for (int w = 0; w < P::kWords; ++w) pack.set_word(w, words[w]);
    }
    return widened<float>(pack);
  }
};
/// or in registers.
template <class Team>
struct RegisterVector {
  typename Team::Scratch tiles;
  template <class Vector>
  ROOFTILE_TILE RegisterVector(const Team& team, const Vector& vector, std::int64_t size) {
    team.each(size, [&](const tile::Chunk& chunk) { tiles[chunk] = vector.load(team, chunk); });
  }
  ROOFTILE_TILE typename Team::Tile load(const Team&, const tile::Chunk& chunk) const { return tiles[chunk]; }
};
/// The columns that this block has of it.
template <class W, bool kAhead>
ROOFTILE_TILE GlobalVector<W, kAhead> vector_of(const ColumnVector& c, const RowRange& range, float absent) {
  const auto* data = static_cast<const W*>(c.data);
  return {{data ? data + range.first * c.stride : nullptr, range.size, c.stride}, absent};
}

/// In memory as f32 or as T, which a kernel for both learns from the call.
template <class T>
struct EitherVector {
  GlobalVector<T, false> as_data;
  GlobalVector<float, false> as_float;
  bool is_float;
  template <class Team>
  ROOFTILE_TILE void ask(const Team&) const {}
  template <class Team>
  ROOFTILE_TILE typename Team::Tile load(const Team& team, const tile::Chunk& chunk) const {
    return is_float ? as_float.load(team, chunk) : as_data.load(team, chunk);
  }
};

}  // namespace cuda
}  // namespace rooftile::tile
