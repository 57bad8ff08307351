#pragma once
// What passes from validation (normalize.cpp) to the launches (normalize.kernels.cpp).
#include "rooftile/core/row_problem.h"

namespace rooftile {

using NormalizeProblem = RowProblem<RowCounts{.inputs = 1, .outputs = 1, .statistics_out = 1}>;  // x; y; norm
using NormalizeBackwardProblem =  // x, dy; norm; dx
    RowProblem<RowCounts{.inputs = 2, .statistics_in = 1, .outputs = 1}>;

}  // namespace rooftile
