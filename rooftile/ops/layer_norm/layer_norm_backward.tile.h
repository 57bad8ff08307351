#pragma once
#include "rooftile/ops/layer_norm/layer_norm.problem.h"
#include "rooftile/tile/rows.h"

namespace rooftile::kernels {
using namespace rooftile::tile;

/// One row, with x̂ = (x - mean) · rstd and g = dy · weight:
///   dx = rstd · (g - Σ g / N - x̂ · Σ g·x̂ / N),
/// and over rows dweight = Σ dy·x̂, dbias = Σ dy. x̂ itself is not needed: rstd, which the row has in common,
/// is taken out of its sums.
template <class Real>
struct LayerNormBackward {
  using Problem = LayerNormBackwardProblem;
  static constexpr bool kAddsResidual = false, kFullRows = true;
  enum { kX, kDy };         // inputs
  enum { kMean, kRstd };    // statistics
  enum { kWeight, kBias };  // vectors and their gradients
  constexpr float absent(int) const { return 1; }

  template <class Team>
  struct Sums {
    typename Team::Accumulator g, products;  // Σ g, Σ g·(x - mean)
  };
  struct Found {
    Real shift, slope;  // dx = rstd·g - shift - (x - mean)·slope
  };
  template <class Team>
  ROOFTILE_TILE Sums<Team> begin(const Team& team) const {
    return {team.accumulator(), team.accumulator()};
  }
  // [sums]
  /// In the tail's empty lanes dy is 0, and x - mean may be anything.
  ROOFTILE_TILE void read(auto& sums, const auto& at) const {
    const auto g = at.in[kDy] * at.w[kWeight];
    const auto centred = at.team.only(at.chunk, at.in[kX] - at.row.statistics[kMean], 0);
    sums.g[at.chunk] += g;
    sums.products[at.chunk] = fma(g, centred, sums.products[at.chunk]);
  }
  // [/sums]
  ROOFTILE_TILE Found measure(const auto& team, const auto& sums, const auto& row, Real each_one) const {
    const Real rstd = row.statistics[kRstd];
    const auto both = team.sums(sums.g, sums.products);
    // Where rstd is infinite, x̂ is so with both signs, and all of it NaN.
    return {both.first * each_one * rstd, both.second * each_one * rstd * rstd * rstd + (rstd - rstd)};
  }
  // [gradients]
  ROOFTILE_TILE auto write(const Found& found, const auto& at, auto& columns) const {
    const auto centred = at.in[kX] - at.row.statistics[kMean];
    const auto scaled = at.in[kDy] * at.row.statistics[kRstd];
    columns.add_product(kWeight, at.chunk, scaled, centred);
    columns.add(kBias, at.chunk, at.in[kDy]);
    return fma(centred, -found.slope, fma(scaled, at.w[kWeight], -found.shift));
  }
  // [/gradients]
};

}  // namespace rooftile::kernels
