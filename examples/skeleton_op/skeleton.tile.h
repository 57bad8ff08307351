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

  ROOFTILE_TILE void read(auto& sum, const auto& at) const { sum[at.chunk] += at.in[0]; }
  ROOFTILE_TILE float measure(const auto& team, const auto& sum, const auto&, float each_one) const {
    return team.sum(sum) * each_one;
  }
  ROOFTILE_TILE Tiles<float, 1> statistics(float mean) const { return {{mean}}; }
  ROOFTILE_TILE auto write(float mean, const auto& at, const auto&) const {
    return (at.in[0] - mean) * at.w[0];
  }
};

/// One row: dx = g - Σ g / N, g = dy · weight; over rows dweight = Σ dy·(x - mean).
struct SkeletonBackward {
  using Problem = SkeletonBackwardProblem;
  static constexpr bool kAddsResidual = false;
  enum { kX, kDy };  // inputs
  enum { kMean };    // statistics
  constexpr float absent(int) const { return 1; }

  ROOFTILE_TILE void read(auto& sum, const auto& at) const { sum[at.chunk] += at.in[kDy] * at.w[0]; }
  ROOFTILE_TILE float measure(const auto& team, const auto& sum, const auto&, float each_one) const {
    return team.sum(sum) * each_one;
  }
  ROOFTILE_TILE auto write(float mean_of_g, const auto& at, auto& columns) const {
    columns.add_product(0, at.chunk, at.in[kDy], at.in[kX] - at.row.statistics[kMean]);
    return at.in[kDy] * at.w[0] - mean_of_g;
  }
};

}  // namespace rooftile::kernels
