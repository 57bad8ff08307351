#pragma once
// What passes from validation (layer_norm.cpp) to the launches and the ladder.
#include "rooftile/core/row_problem.h"

namespace rooftile {

struct LayerNormProblem
    : RowProblem<RowCounts{.inputs = 2, .outputs = 2, .statistics_out = 2, .vectors = 2}> {
  enum Operand { kX, kResidual, kY, kSum, kMean, kRstd };
  enum Vector { kWeight, kBias };
  template <class Real = float>
  constexpr Real eps() const {
    return real<Real>(0);
  }
};

struct LayerNormBackwardProblem
    : RowProblem<RowCounts{.inputs = 2, .statistics_in = 2, .outputs = 1, .vectors = 1, .gradients = 2}> {};

}  // namespace rooftile
