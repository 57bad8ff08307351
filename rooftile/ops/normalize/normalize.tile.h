#pragma once
#include "rooftile/ops/normalize/normalize.problem.h"
#include "rooftile/tile/rows.h"

namespace rooftile::kernels {
using namespace rooftile::tile;

/// 1 / max(norm, eps) as two factors: of a subnormal norm it would overflow. Of a NaN a NaN.
template <class Real>
struct InverseNorm {
  Real scale, inverse;
  // [inverse]
  ROOFTILE_TILE InverseNorm(Real norm, Real eps) {
    const Real n = norm < eps ? eps : norm;
    scale = n < 0x1p-64f ? 0x1p64f : 1;
    inverse = 1 / (n * scale);
  }
  // [/inverse]
  InverseNorm() = default;
  /// The same of n / factor: that may overflow, or be subnormal and so have lost digits.
  ROOFTILE_TILE InverseNorm(Real n, Real factor, Real eps) : InverseNorm(n / factor, eps) {
    const Real norm = n / factor;
    if (factor > 1 && !(norm < eps)) scale = factor, inverse = 1 / n;
    if (factor < 1 && !(norm < eps) && norm > 0x1p126f) scale = 0x1p-64f, inverse = factor * 0x1p64f / n;
  }
  ROOFTILE_TILE auto operator()(const auto& x) const { return x * scale * inverse; }
};

/// One row: y = x / max(n, eps), n = Σ |x| (kL1) or √(Σ x²).
template <bool kL1, class Real>
struct Normalize {
  using Problem = NormalizeProblem;
  static constexpr bool kAddsResidual = false;
  Real eps;

  struct Found {
    Real norm;
    InverseNorm<Real> over_norm;
  };
  // [read]
  ROOFTILE_TILE void read(auto& sums, const auto& at) const {
    if constexpr (kL1)
      sums[at.chunk] += abs(at.in[0]);
    else
      sums[at.chunk] = fma(at.in[0], at.in[0], sums[at.chunk]);
  }
  // [/read]
  // [measure]
  ROOFTILE_TILE Found measure(const auto& team, const auto& sums, const auto&, Real) const {
    const Real sum = team.sum(sums), norm = kL1 ? sum : sqrt(sum);
    return {norm, InverseNorm<Real>(norm, eps)};
  }
  // [/measure]
  /// Of rows whose sum overflows, or whose squares lost digits.
  ROOFTILE_TILE static float second_look(const Found& found) {
    constexpr float kLeast = kL1 ? 0 : 0x1p-45f;  // √kLeastSquares
    return found.norm == kInfinity ? kShrinks : found.norm < kLeast ? kGrows : 1;
  }
  ROOFTILE_TILE static auto term(const auto& x) {
    if constexpr (kL1)
      return abs(x);
    else
      return x * x;
  }
  ROOFTILE_TILE Found measure_again(Real sum, Real, Real factor) const {
    const Real n = kL1 ? sum : sqrt(sum);
    return {n / factor, InverseNorm<Real>(n, factor, eps)};
  }
  ROOFTILE_TILE Tiles<Real, 1> statistics(const Found& found) const { return {{found.norm}}; }
  ROOFTILE_TILE auto write(const Found& found, const auto& at, const auto&) const {
    return found.over_norm(at.in[0]);
  }
};

/// One row: dx = (dy - d·Σ dy·y) / n, y = x / n, d = sign x (kL1) or y; dx = dy / eps where n < eps.
template <bool kL1, class Real>
struct NormalizeBackward {
  using Problem = NormalizeBackwardProblem;
  static constexpr bool kAddsResidual = false;
  enum { kX, kDy };  // inputs
  enum { kNorm };    // statistics
  Real eps;

  struct Found {
    InverseNorm<Real> over_norm;
    Real inner;  // Σ dy·y (kL1) or Σ dy·y / n
  };
  ROOFTILE_TILE void read(auto& products, const auto& at) const {
    products[at.chunk] = fma(at.in[kDy], at.in[kX], products[at.chunk]);
  }
  ROOFTILE_TILE Found measure(const auto& team, const auto& products, const auto& row, Real) const {
    const InverseNorm<Real> over_norm(row.statistics[kNorm], eps);
    const Real inner = over_norm(team.sum(products));
    return {over_norm, row.statistics[kNorm] < eps ? 0 : kL1 ? inner : over_norm(inner)};
  }
  ROOFTILE_TILE auto write(const Found& found, const auto& at, const auto&) const {
    const auto &x = at.in[kX], &dy = at.in[kDy];
    // [backward]
    if constexpr (kL1) {
      const auto sign = select(x < 0, like(x, -1), select(x > 0, like(x, 1), like(x, 0)));
      return found.over_norm(fma(sign, -found.inner, dy));
    } else {
      return found.over_norm(fma(x, -found.inner, dy));
    }
    // [/backward]
  }
};

}  // namespace rooftile::kernels
