#pragma once
#include "rooftile/tile/tile.h"

namespace rooftile::kernels {
using namespace rooftile::tile;

/// y = x, as 32-bit words: a load and a store change no bit, whatever the words hold.
template <class Team>
ROOFTILE_TILE void copy_words(Team team, Row<const float> x, Row<float> y) {
  auto words = team.hold(x, 0);
  team.each(x.size, [&](auto chunk) { team.store(y, chunk, words[chunk]); });
}
/// The bytes at the ends.
template <class Team>
ROOFTILE_TILE void copy_bytes(Team team, Row<const std::uint8_t> x, Row<std::uint8_t> y) {
  team.each(x.size, [&](auto chunk) { team.store(y, chunk, team.load_integers(x, chunk)); });
}

// [add]
/// z = x + y.
template <class Team, class T>
ROOFTILE_TILE void add(Team team, Row<const T> x, Row<const T> y, Row<T> z) {
  auto left = team.hold(x, 0);
  auto right = team.hold(y, 0);
  team.each(z.size, [&](auto chunk) { team.store(z, chunk, left[chunk] + right[chunk]); });
}
// [/add]

/// y = αx + β · before, what y held; for factors that are not 0.
template <class Team, class T>
ROOFTILE_TILE void axpby(Team team, typename Team::Real alpha, Row<const T> x, typename Team::Real beta,
                         Row<const T> before, Row<T> y) {
  auto in = team.hold(x, 0);
  auto out = team.hold(before, 0);
  team.each(y.size, [&](auto chunk) { team.store(y, chunk, fma(in[chunk], alpha, out[chunk] * beta)); });
}
/// y = αx.
template <class Team, class T>
ROOFTILE_TILE void scale(Team team, typename Team::Real alpha, Row<const T> x, Row<T> y) {
  auto in = team.hold(x, 0);
  team.each(y.size, [&](auto chunk) { team.store(y, chunk, in[chunk] * alpha); });
}
/// y = 0.
template <class Team, class T>
ROOFTILE_TILE void zero(Team team, Row<T> y) {
  team.each(y.size, [&](auto chunk) { team.store(y, chunk, team.fill(0)); });
}

// [dot]
/// One chunk of Σ xᵢyᵢ. A tile holds four vectors of sums: four chains, which hide each other's latency.
template <class Team, class X>
ROOFTILE_TILE typename Team::Real dot(Team team, const X& x, const X& y) {
  auto left = team.hold(x, 0);  // lanes past the end read 0 and add nothing
  auto right = team.hold(y, 0);
  auto sums = team.fill(0);
  team.each(x.size, [&](auto chunk) { sums = fma(left[chunk], right[chunk], sums); });
  return team.sum(sums);
}
// [/dot]

/// Elements of a chunk: long enough that its own cost vanishes (128 KiB of f32), short enough that no lane
/// adds more than 2^14 / 64 = 256 terms in f32 on AVX-512 (2^14 / 16 = 1024 on the baseline).
inline constexpr std::int64_t kDotChunk = std::int64_t{1} << 14;

/// Adds numbers pairwise in the order they come: ((0 + 1) + (2 + 3)) + ((4 + 5) + 6). Like a binary counter:
/// level l holds the sum of 2^l neighbours, and two of one level are added and carried. The tree follows from
/// the count alone, and the sum of 2^l neighbours that begin at a multiple of 2^l is a node of it: threads
/// may compute these apart.
class PairwiseSum {
 public:
  ROOFTILE_TILE
  void add(double value) {
    int l = 0;
    for (std::int64_t carry = count_++; carry & 1; carry >>= 1) value = level_[l++] + value;
    level_[l] = value;
  }
  ROOFTILE_TILE
  double total() const {
    double sum = 0;
    bool any = false;
    for (int l = 0; count_ >> l; ++l) {
      if (!(count_ >> l & 1)) continue;
      sum = any ? level_[l] + sum : level_[l];
      any = true;
    }
    return sum;
  }

 private:
  std::int64_t count_ = 0;
  double level_[50];  // 2^50 chunks are 2^64 elements
};

}  // namespace rooftile::kernels
