#pragma once
#include "rooftile/core/plugin.h"
#include "rooftile/ops/blas1/blas1.problem.h"

namespace rooftile::ladder {

/// Calls sum(x, y, n) and writes what it returns.
template <class Sum>
void write_dot(const DotProblem& p, Sum sum) {
  const double value =
      sum(static_cast<const float*>(p.data[0]), static_cast<const float*>(p.data[1]), p.rows.columns);
  if (p.result_dtype == DType::f64)
    *static_cast<double*>(p.result) = value;
  else
    *static_cast<float*>(p.result) = static_cast<float>(value);
}

}  // namespace rooftile::ladder
