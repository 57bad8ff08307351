#pragma once
#include "rooftile/ops/normalize/normalize.problem.h"
#include "rooftile/tile/rows.h"

namespace rooftile::kernels {
using namespace rooftile::tile;

/// 1 / max(norm, eps) as two factors: of a subnormal norm it would overflow. Of a NaN a NaN.
struct InverseNorm {
  float scale, inverse;
  // [inverse]
  ROOFTILE_TILE InverseNorm(float norm, float eps) {
    const float n = norm < eps ? eps : norm;
    scale = n < 0x1p-64f ? 0x1p64f : 1;
    inverse = 1 / (n * scale);
  }
  // [/inverse]
  InverseNorm() = default;
  template <class X>
  ROOFTILE_TILE X operator()(const X& x) const {
    return x * scale * inverse;
  }
};

/// One row: y = x / max(n, eps), n = Σ |x| (kL1) or √(Σ x²).
template <bool kL1>
struct Normalize {
  using Problem = NormalizeProblem;
  static constexpr bool kAddsResidual = false;
  float eps;

  struct Found {
    float norm;
    InverseNorm over_norm;
  };
  template <class Team, class In>
  ROOFTILE_TILE auto begin(const Team& team, std::int64_t, const In&) const {
    return team.accumulator();
  }
  // [read]
  template <class Team, class Sums, class C, class In, class W, class Row>
  ROOFTILE_TILE void read(const Team&, Sums& sums, C chunk, const In& in, const W&, const Row&) const {
    if constexpr (kL1)
      sums[chunk] += abs(in[0]);
    else
      sums[chunk] = fma(in[0], in[0], sums[chunk]);
  }
  // [/read]
  // [measure]
  template <class Team, class Sums, class Row>
  ROOFTILE_TILE Found measure(const Team& team, const Sums& sums, const Row&, float) const {
    const float sum = team.sum(sums), norm = kL1 ? sum : sqrt(sum);
    return {norm, InverseNorm(norm, eps)};
  }
  // [/measure]
  ROOFTILE_TILE Tiles<float, 1> statistics(const Found& found) const { return {{found.norm}}; }
  template <class Team, class C, class In, class W, class Row, class Columns>
  ROOFTILE_TILE auto write(const Team&, const Found& found, C, const In& in, const W&, const Row&,
                           const Columns&) const {
    return found.over_norm(in[0]);
  }
};

/// One row: dx = (dy - d·Σ dy·y) / n, y = x / n, d = sign x (kL1) or y; dx = dy / eps where n < eps.
template <bool kL1>
struct NormalizeBackward {
  using Problem = NormalizeBackwardProblem;
  static constexpr bool kAddsResidual = false;
  enum { kX, kDy };
  float eps;

  struct Found {
    InverseNorm over_norm;
    float inner;  // Σ dy·y (kL1) or Σ dy·y / n
  };
  template <class Team, class In>
  ROOFTILE_TILE auto begin(const Team& team, std::int64_t, const In&) const {
    return team.accumulator();
  }
  template <class Team, class Sums, class C, class In, class W, class Row>
  ROOFTILE_TILE void read(const Team&, Sums& products, C chunk, const In& in, const W&, const Row&) const {
    products[chunk] = fma(in[kDy], in[kX], products[chunk]);
  }
  template <class Team, class Sums, class Row>
  ROOFTILE_TILE Found measure(const Team& team, const Sums& products, const Row& row, float) const {
    const InverseNorm over_norm(row.statistics[0], eps);
    const float inner = over_norm(team.sum(products));
    return {over_norm, row.statistics[0] < eps ? 0 : kL1 ? inner : over_norm(inner)};
  }
  template <class Team, class C, class In, class W, class Row, class Columns>
  ROOFTILE_TILE auto write(const Team&, const Found& found, C, const In& in, const W&, const Row&,
                           const Columns&) const {
    // [backward]
    if constexpr (kL1) {
      const auto sign =
          select(in[kX] < 0, like(in[kX], -1), select(in[kX] > 0, like(in[kX], 1), like(in[kX], 0)));
      return found.over_norm(fma(sign, -found.inner, in[kDy]));
    } else {
      return found.over_norm(fma(in[kX], -found.inner, in[kDy]));
    }
    // [/backward]
  }
};

}  // namespace rooftile::kernels
