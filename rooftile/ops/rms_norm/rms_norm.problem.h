#pragma once
// What passes from validation (rms_norm.cpp) to the launches (rms_norm.kernels.cpp).
#include "rooftile/core/row_problem.h"

namespace rooftile {

using RmsNormProblem =  // x, residual; weight; y, sum; rstd
    RowProblem<RowCounts{.inputs = 2, .outputs = 2, .statistics_out = 1, .vectors = 1}>;
using RmsNormBackwardProblem =  // x, dy; weight, rstd; dx; dweight
    RowProblem<RowCounts{.inputs = 2, .statistics_in = 1, .outputs = 1, .vectors = 1, .gradients = 1}>;

}  // namespace rooftile
