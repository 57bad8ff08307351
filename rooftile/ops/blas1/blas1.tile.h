#pragma once
#include "rooftile/tile/reduction.h"

namespace rooftile::kernels {
using namespace rooftile::tile;

/// y = x, as 32-bit words: a load and a store change no bit, whatever the words hold.
template <class Team>
ROOFTILE_TILE void copy_words(Team team, Row<const float> x, Row<float> y) {
  auto words = team.hold(x, 0);
  team.each(x.size, [&](auto chunk) { team.store(y, chunk, words[chunk]); });
}
/// y = x, rounded to y's dtype.
template <class Team, class T>
ROOFTILE_TILE void copy_rounded(Team team, Row<const float> x, Row<T> y) {
  auto numbers = team.hold(x, 0);
  team.each(y.size, [&](auto chunk) { team.store(y, chunk, numbers[chunk]); });
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

// [swap]
/// x ↔ y.
struct Swap {
  template <Lanes X>
  ROOFTILE_TILE auto operator()(const X& x, const X& y) const {
    return Pair<X>{y, x};
  }
};
// [/swap]
/// y = αx.
struct Scale {
  double alpha;
  template <Lanes X>
  ROOFTILE_TILE auto operator()(const X& x) const {
    return x * static_cast<typename X::Lane>(alpha);
  }
};
/// y = αx + βy, for factors that are not 0.
struct Axpby {
  double alpha, beta;
  template <Lanes X>
  ROOFTILE_TILE auto operator()(const X& x, const X& y) const {
    using Real = typename X::Lane;
    return fma(x, static_cast<Real>(alpha), y * static_cast<Real>(beta));
  }
};
/// y = 0.
struct Zero {
  template <Lanes X>
  ROOFTILE_TILE auto operator()(const X& x) const {
    return like(x, 0);
  }
};

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

struct Dot : Sum {
  template <class Team, class X>
  ROOFTILE_TILE static double chunk(const Team& team, const X& x, const X& y) {
    return dot(team, x, y);
  }
};

// [asum]
/// Σ |xᵢ|.
struct Asum : Sum {
  template <class Team, class X>
  ROOFTILE_TILE static double chunk(Team team, const X& x) {
    auto in = team.hold(x, 0);
    auto sums = team.fill(0);
    team.each(x.size, [&](auto chunk) { sums = sums + abs(in[chunk]); });
    return team.sum(sums);
  }
};
// [/asum]

/// √Σ xᵢ². A chunk's squares are added as they are. Where the sum overflows, or is so small that squares may
/// have lost their digits, the chunk is read once more, from the cache, and scaled by a power of two.
struct Nrm2 {
  struct Partial {
    double sum, unit;  ///< Σ (xᵢ/unit)²
  };

  template <bool kScaled, class Team, class X>
  ROOFTILE_TILE static typename Team::Real squares(Team team, const X& x, typename Team::Real scale) {
    auto in = team.hold(x, 0);
    auto sums = team.fill(0);
    team.each(x.size, [&](auto chunk) {
      decltype(sums) t = in[chunk];
      if constexpr (kScaled) t = t * scale;
      sums = fma(t, t, sums);
    });
    return team.sum(sums);
  }
  // [nrm2]
  template <class Team, class X>
  ROOFTILE_TILE static Partial chunk(const Team& team, const X& x) {
    using Real = typename Team::Real;
    constexpr bool kWide = sizeof(Real) == 8;
    // Below kMin a square that counts may be subnormal; kMax leaves room for 2^63 chunks. kUnit brings the
    // largest number's square into range, 1/kUnit the smallest one's.
    constexpr Real kMin = static_cast<Real>(kWide ? 0x1p-900 : 0x1p-80);
    constexpr Real kMax = static_cast<Real>(kWide ? 0x1p960 : 0x1p126);
    constexpr double kUnit = kWide ? 0x1p600 : 0x1p90;
    const Real sum = squares<false>(team, x, 1);
    if (!(sum < kMin || sum > kMax)) return {sum, 1};  // a NaN, too
    const double unit = sum < kMin ? 1 / kUnit : kUnit;
    return {squares<true>(team, x, static_cast<Real>(1 / unit)), unit};
  }
  // [/nrm2]

  ROOFTILE_TILE static Partial nothing() { return {0, 0x1p-600}; }
  /// In the larger unit. The factor is applied twice: its square may underflow where the product does not.
  ROOFTILE_TILE static Partial join(const Partial& left, const Partial& right) {
    const bool down = left.unit < right.unit;
    const Partial &large = down ? right : left, &small = down ? left : right;
    const double factor = small.unit / large.unit;
    return {large.sum + small.sum * factor * factor, large.unit};
  }
  ROOFTILE_TILE static double finish(const Partial& all) { return sqrt(all.sum) * all.unit; }
};

}  // namespace rooftile::kernels
