#pragma once
// What passes from validation (dyt.cpp) to the launches (dyt.kernels.cpp).
#include "rooftile/core/row_problem.h"

namespace rooftile {

using DytProblem =  // x, alpha; weight, bias; y
    RowProblem<RowCounts{.inputs = 1, .outputs = 1, .vectors = 2, .scalars = 1}>;
using DytBackwardProblem =  // x, dy, alpha; weight; dx, dalpha; dweight, dbias
    RowProblem<RowCounts{
        .inputs = 2, .outputs = 1, .vectors = 1, .gradients = 2, .scalars = 1, .scalar_gradients = 1}>;

}  // namespace rooftile
