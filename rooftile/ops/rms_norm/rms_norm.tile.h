#pragma once
#include "rooftile/ops/rms_norm/rms_norm.problem.h"
#include "rooftile/tile/rows.h"

namespace rooftile::kernels {
using namespace rooftile::tile;

// [forward]
/// One row: y = h · rstd · w, rstd = 1 / √(Σ h² / N + eps), w = weight, or weight + 1.
struct RmsNorm {
  using Problem = RmsNormProblem;
  static constexpr bool kAddsResidual = true;
  float eps, plus;                                        // plus: 0 or 1
  constexpr float absent(int) const { return 1 - plus; }  // w is 1

  template <class Team, class In>
  ROOFTILE_TILE auto begin(const Team& team, std::int64_t, const In&) const {
    return team.accumulator();
  }
  // [stages]
  template <class Team, class Sums, class C, class In, class W, class Row>
  ROOFTILE_TILE void read(const Team&, Sums& squares, C chunk, const In& in, const W&, const Row&) const {
    squares[chunk] = fma(in[0], in[0], squares[chunk]);
  }
  template <class Team, class Sums, class Row>
  ROOFTILE_TILE float measure(const Team& team, const Sums& squares, const Row&, float each_one) const {
    return rsqrt(team.sum(squares) * each_one + eps);
  }
  ROOFTILE_TILE Tiles<float, 1> statistics(float rstd) const { return {{rstd}}; }
  template <class Team, class C, class In, class W, class Row, class Columns>
  ROOFTILE_TILE auto write(const Team&, float rstd, C, const In& in, const W& w, const Row&,
                           const Columns&) const {
    return in[0] * rstd * (w[0] + plus);
  }
  // [/stages]
};
// [/forward]

// [backward]
/// One row, with x̂ = x · rstd and g = dy · w: dx = rstd · (g - x̂ · Σ g·x̂ / N); over rows dweight = Σ dy·x̂.
struct RmsNormBackward {
  using Problem = RmsNormBackwardProblem;
  static constexpr bool kAddsResidual = false;
  enum { kX, kDy };
  float plus;
  constexpr float absent(int) const { return 1 - plus; }

  template <class Team, class In>
  ROOFTILE_TILE auto begin(const Team& team, std::int64_t, const In&) const {
    return team.accumulator();
  }
  template <class Team, class Sums, class C, class In, class W, class Row>
  ROOFTILE_TILE void read(const Team&, Sums& products, C chunk, const In& in, const W& w,
                          const Row& row) const {
    products[chunk] = fma(in[kDy] * (w[0] + plus), in[kX] * row.statistics[0], products[chunk]);
  }
  template <class Team, class Sums, class Row>
  ROOFTILE_TILE float measure(const Team& team, const Sums& products, const Row&, float each_one) const {
    return team.sum(products) * each_one;
  }
  // [dx]
  template <class Team, class C, class In, class W, class Row, class Columns>
  ROOFTILE_TILE auto write(const Team&, float mean, C chunk, const In& in, const W& w, const Row& row,
                           Columns& columns) const {
    const float rstd = row.statistics[0];
    const auto normal = in[kX] * rstd;
    columns.add_product(0, chunk, in[kDy], normal);
    return fma(normal, -mean, in[kDy] * (w[0] + plus)) * rstd;
  }
  // [/dx]
};
// [/backward]

}  // namespace rooftile::kernels
