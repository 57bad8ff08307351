#pragma once
// Random words on a GPU: a thread's lanes are neighbours, four to a counter.
#include "rooftile/core/philox.h"
#include "rooftile/tile/cuda/tile.h"

namespace rooftile::tile {
inline namespace cuda {

/// `first` is a multiple of 4 but in rows of a length that is none: such take one counter more, and two
/// selections for each lane.
template <Lanes X>
ROOFTILE_TILE Tile<std::uint32_t, X::kLanes> random_words(const PhiloxStream& stream, std::uint64_t first) {
  constexpr int kGroups = X::kLanes / 4;
  static_assert(X::kLanes % 4 == 0, "rooftile::tile::random_words: four neighbours share a counter");
  Tile<std::uint32_t, 4 * kGroups + 4> words;
  const auto take = [&](int g) {
    const PhiloxWords four = stream.group(first / 4 + static_cast<std::uint64_t>(g));
    ROOFTILE_UNROLL for (int i = 0; i < 4; ++i) words.v[4 * g + i] = four.word[i];
  };
  ROOFTILE_UNROLL for (int g = 0; g < kGroups; ++g) take(g);
  const auto past = static_cast<unsigned>(first % 4);
  if (past != 0) {
    take(kGroups);
    ROOFTILE_UNROLL for (int i = 0; i < 4 * kGroups + 3; ++i) {
      if (past & 1) words.v[i] = words.v[i + 1];
    }
    ROOFTILE_UNROLL for (int i = 0; i < 4 * kGroups; ++i) {
      if (past & 2) words.v[i] = words.v[i + 2];
    }
  }
  Tile<std::uint32_t, X::kLanes> r;
  ROOFTILE_EACH_LANE(X::kLanes) r.v[i] = words.v[i];
  return r;
}

}  // namespace cuda
}  // namespace rooftile::tile
