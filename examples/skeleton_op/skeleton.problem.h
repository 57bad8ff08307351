#pragma once
// What passes from validation (skeleton.cpp) to the launches (skeleton.kernels.cpp).
#include "rooftile/core/row_problem.h"

namespace rooftile {

using SkeletonProblem =  // x; weight; y; mean
    RowProblem<RowCounts{.inputs = 1, .outputs = 1, .statistics_out = 1, .vectors = 1}>;
using SkeletonBackwardProblem =  // x, dy; weight, mean; dx; dweight
    RowProblem<RowCounts{.inputs = 2, .statistics_in = 1, .outputs = 1, .vectors = 1, .gradients = 1}>;

}  // namespace rooftile
