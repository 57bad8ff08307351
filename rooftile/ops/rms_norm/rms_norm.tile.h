#pragma once
#include "rooftile/ops/rms_norm/rms_norm.problem.h"
#include "rooftile/tile/rows.h"

namespace rooftile::kernels {
using namespace rooftile::tile;

// [forward]
/// One row: y = h · rstd · w, rstd = 1 / √(Σ h² / N + eps), w = weight, or weight + 1.
template <class Real>
struct RmsNorm {
  using Problem = RmsNormProblem;
  static constexpr bool kAddsResidual = true;
  Real eps, plus;                                        // plus: 0 or 1
  constexpr Real absent(int) const { return 1 - plus; }  // w is 1

  // [stages]
  ROOFTILE_TILE void read(auto& squares, const auto& at) const {
    squares[at.chunk] = fma(at.in[0], at.in[0], squares[at.chunk]);
  }
  ROOFTILE_TILE Real measure(const auto& team, const auto& squares, const auto&, Real each_one) const {
    return rsqrt(team.sum(squares) * each_one + eps);
  }
  ROOFTILE_TILE Tiles<Real, 1> statistics(Real rstd) const { return {{rstd}}; }
  ROOFTILE_TILE auto write(Real rstd, const auto& at, const auto&) const {
    return at.in[0] * rstd * (at.w[0] + plus);
  }
  // [/stages]
  // [second_look]
  /// Where Σ h² overflows, rstd is 0; where the mean and eps are so small that squares lost digits, it is
  /// large.
  ROOFTILE_TILE static float second_look(float rstd) {
    constexpr float kMost = 0x1p45f;  // 1 / √kLeastSquares
    return rstd == 0 ? kShrinks : rstd > kMost ? kGrows : 1;
  }
  ROOFTILE_TILE static auto term(const auto& h) { return h * h; }
  ROOFTILE_TILE float measure_again(float squares, float each_one, float factor) const {
    return rsqrt(squares * each_one + eps * factor * factor) * factor;
  }
  // [/second_look]
};
// [/forward]

// [backward]
/// One row, with x̂ = x · rstd and g = dy · w: dx = rstd · (g - x̂ · Σ g·x̂ / N); over rows dweight = Σ dy·x̂.
template <class Real>
struct RmsNormBackward {
  using Problem = RmsNormBackwardProblem;
  static constexpr bool kAddsResidual = false;
  enum { kX, kDy };  // inputs
  enum { kRstd };    // statistics
  Real plus;
  constexpr Real absent(int) const { return 1 - plus; }

  ROOFTILE_TILE void read(auto& products, const auto& at) const {
    const auto g = at.in[kDy] * (at.w[0] + plus);
    products[at.chunk] = fma(g, at.in[kX] * at.row.statistics[kRstd], products[at.chunk]);
  }
  ROOFTILE_TILE Real measure(const auto& team, const auto& products, const auto&, Real each_one) const {
    return team.sum(products) * each_one;
  }
  // [dx]
  ROOFTILE_TILE auto write(Real mean, const auto& at, auto& columns) const {
    const Real rstd = at.row.statistics[kRstd];
    const auto normal = at.in[kX] * rstd;
    columns.add_product(0, at.chunk, at.in[kDy], normal);
    return fma(normal, -mean, at.in[kDy] * (at.w[0] + plus)) * rstd;
  }
  // [/dx]
};
// [/backward]

}  // namespace rooftile::kernels
