#pragma once
#include "rooftile/ops/activation/activation.tile.h"
#include "rooftile/ops/dyt/dyt.problem.h"
#include "rooftile/tile/rows.h"

namespace rooftile::kernels {
using namespace rooftile::tile;

// [forward]
/// y = w · tanh(α·x) + b. No element needs the others of its row.
struct Dyt {
  using Problem = DytProblem;
  static constexpr bool kAddsResidual = false, kOnlyWrites = true;
  constexpr float absent(int vector) const { return vector == 0 ? 1 : 0; }  // w is 1, b is 0

  template <class Team, class C, class In, class W, class Row, class Columns>
  ROOFTILE_TILE auto write(const Team&, Nothing, C, const In& in, const W& w, const Row& row,
                           const Columns&) const {
    return fma(tanh(in[0] * row.scalars[0]), w[0], w[1]);
  }
};
// [/forward]

// [backward]
/// With g = dy · w · tanh'(α·x): dx = g · α; over rows dweight = Σ dy · tanh(α·x) and dbias = Σ dy; over rows
/// and columns dalpha = Σ g · x.
struct DytBackward {
  using Problem = DytBackwardProblem;
  static constexpr bool kAddsResidual = false, kOnlyWrites = true;
  enum { kX, kDy };
  constexpr float absent(int) const { return 1; }

  template <class Team, class C, class In, class W, class Row, class Columns>
  ROOFTILE_TILE auto write(const Team&, Nothing, C chunk, const In& in, const W& w, const Row& row,
                           Columns& columns) const {
    const float alpha = row.scalars[0];
    const auto [y, slope] = tanh_and_slope(in[kX] * alpha);
    const auto g = in[kDy] * w[0] * slope;
    columns.add_product(0, chunk, in[kDy], y);
    columns.add(1, chunk, in[kDy]);
    columns.add_to_scalar(0, chunk, g * in[kX]);
    return g * alpha;
  }
};
// [/backward]

}  // namespace rooftile::kernels
