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
  enum { kWeight, kBias };  // vectors
  enum { kAlpha };          // scalars
  constexpr float absent(int vector) const { return vector == kWeight ? 1 : 0; }

  ROOFTILE_TILE auto write(Nothing, const auto& at, const auto&) const {
    return fma(tanh(at.in[0] * at.row.scalars[kAlpha]), at.w[kWeight], at.w[kBias]);
  }
};
// [/forward]

// [backward]
/// With g = dy · w · tanh'(α·x): dx = g · α; over rows dweight = Σ dy · tanh(α·x) and dbias = Σ dy; over rows
/// and columns dalpha = Σ g · x.
struct DytBackward {
  using Problem = DytBackwardProblem;
  static constexpr bool kAddsResidual = false, kOnlyWrites = true;
  enum { kX, kDy };         // inputs
  enum { kWeight, kBias };  // vectors and their gradients
  enum { kAlpha };          // scalars and their gradients
  constexpr float absent(int) const { return 1; }

  ROOFTILE_TILE auto write(Nothing, const auto& at, auto& columns) const {
    const float alpha = at.row.scalars[kAlpha];
    const auto &x = at.in[kX], &dy = at.in[kDy];
    const auto [y, slope] = tanh_and_slope(x * alpha);
    const auto g = dy * at.w[kWeight] * slope;
    columns.add_product(kWeight, at.chunk, dy, y);
    columns.add(kBias, at.chunk, dy);
    columns.add_to_scalar(kAlpha, at.chunk, g * x);
    return g * alpha;
  }
};
// [/backward]

}  // namespace rooftile::kernels
