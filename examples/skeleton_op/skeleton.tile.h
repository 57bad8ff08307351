#pragma once
#include "rooftile/ops/skeleton/skeleton.problem.h"
#include "rooftile/tile/rows.h"

namespace rooftile::kernels {
using namespace rooftile::tile;

/// One row: y = (x - Σ x / N) · weight.
struct Skeleton {
  using Problem = SkeletonProblem;
  static constexpr bool kAddsResidual = false;
  constexpr float absent(int) const { return 1; }  // the weight, where there is none

  template <class Team, class In>
  ROOFTILE_TILE auto begin(const Team& team, std::int64_t, const In&) const {
    return team.accumulator();
  }
  template <class Team, class Sums, class C, class In, class W, class Row>
  ROOFTILE_TILE void read(const Team&, Sums& sum, C chunk, const In& in, const W&, const Row&) const {
    sum[chunk] += in[0];
  }
  template <class Team, class Sums, class Row>
  ROOFTILE_TILE float measure(const Team& team, const Sums& sum, const Row&, float each_one) const {
    return team.sum(sum) * each_one;
  }
  ROOFTILE_TILE Tiles<float, 1> statistics(float mean) const { return {{mean}}; }
  template <class Team, class C, class In, class W, class Row, class Columns>
  ROOFTILE_TILE auto write(const Team&, float mean, C, const In& in, const W& w, const Row&,
                           const Columns&) const {
    return (in[0] - mean) * w[0];
  }
};

/// One row: dx = g - Σ g / N, g = dy · weight; over rows dweight = Σ dy·(x - mean).
struct SkeletonBackward {
  using Problem = SkeletonBackwardProblem;
  static constexpr bool kAddsResidual = false;
  enum { kX, kDy };
  constexpr float absent(int) const { return 1; }

  template <class Team, class In>
  ROOFTILE_TILE auto begin(const Team& team, std::int64_t, const In&) const {
    return team.accumulator();
  }
  template <class Team, class Sums, class C, class In, class W, class Row>
  ROOFTILE_TILE void read(const Team&, Sums& sum, C chunk, const In& in, const W& w, const Row&) const {
    sum[chunk] += in[kDy] * w[0];
  }
  template <class Team, class Sums, class Row>
  ROOFTILE_TILE float measure(const Team& team, const Sums& sum, const Row&, float each_one) const {
    return team.sum(sum) * each_one;
  }
  template <class Team, class C, class In, class W, class Row, class Columns>
  ROOFTILE_TILE auto write(const Team&, float mean_of_g, C chunk, const In& in, const W& w, const Row& row,
                           Columns& columns) const {
    columns.add_product(0, chunk, in[kDy], in[kX] - row.statistics[0]);
    return in[kDy] * w[0] - mean_of_g;
  }
};

}  // namespace rooftile::kernels
