#pragma once
#include "rooftile/ops/layer_norm/layer_norm.problem.h"
#include "rooftile/tile/rows.h"

namespace rooftile::kernels {
using namespace rooftile::tile;

/// One row, with x̂ = (x - mean) · rstd and g = dy · weight:
///   dx = rstd · (g - Σ g / N - x̂ · Σ g·x̂ / N),
/// and over rows dweight = Σ dy·x̂, dbias = Σ dy. x̂ itself is not needed: rstd, which the row has in common,
/// is taken out of its sums.
struct LayerNormBackward {
  using Problem = LayerNormBackwardProblem;
  static constexpr bool kAddsResidual = false;
  enum { kX, kDy };         // inputs
  enum { kMean, kRstd };    // statistics
  enum { kWeight, kBias };  // gradients
  constexpr float absent(int) const { return 1; }

  template <class Team>
  struct Sums {
    typename Team::Accumulator g, products;  // Σ g, Σ g·(x - mean)
  };
  struct Found {
    float shift, slope;  // dx = rstd·g - shift - (x - mean)·slope
  };
  template <class Team, class In>
  ROOFTILE_TILE Sums<Team> begin(const Team& team, std::int64_t, const In&) const {
    return {team.accumulator(), team.accumulator()};
  }
  // [sums]
  /// In the tail's empty lanes dy is 0, and x - mean may be anything.
  template <class Team, class C, class In, class W, class Row>
  ROOFTILE_TILE void read(const Team& team, Sums<Team>& sums, C chunk, const In& in, const W& w,
                          const Row& row) const {
    const auto g = in[kDy] * w[0];
    sums.g[chunk] += g;
    sums.products[chunk] = fma(g, team.only(chunk, in[kX] - row.statistics[kMean], 0), sums.products[chunk]);
  }
  // [/sums]
  template <class Team, class Row>
  ROOFTILE_TILE Found measure(const Team& team, const Sums<Team>& sums, const Row& row,
                              float each_one) const {
    const float rstd = row.statistics[kRstd];
    const auto both = team.sums(sums.g, sums.products);
    // Where rstd is infinite, x̂ is so with both signs, and all of it NaN.
    return {both.first * each_one * rstd, both.second * each_one * rstd * rstd * rstd + (rstd - rstd)};
  }
  // [gradients]
  template <class Team, class C, class In, class W, class Row, class Columns>
  ROOFTILE_TILE auto write(const Team&, const Found& found, C chunk, const In& in, const W& w, const Row& row,
                           Columns& columns) const {
    const auto centred = in[kX] - row.statistics[kMean], scaled = in[kDy] * row.statistics[kRstd];
    columns.add_product(kWeight, chunk, scaled, centred);
    columns.add(kBias, chunk, in[kDy]);
    return fma(centred, -found.slope, fma(scaled, w[0], -found.shift));
  }
  // [/gradients]
};

}  // namespace rooftile::kernels
