#pragma once
// What passes from validation (grad_norm.cpp) to the launches (grad_norm.cpu.cpp, grad_norm.cu).
#include "rooftile/core/lists.h"
#include "rooftile/core/reduction.h"

namespace rooftile {

struct GradNormNumbers {
  double max_norm;
  const float* gradient_scale;  ///< null: absent, as coefficient and found_inf
  float *norm, *coefficient, *found_inf;
};
struct GradNormProblem {
  GradNormNumbers numbers;
  const Call* call;  ///< the gradients are its first operand

  std::int64_t count() const { return call->tensors; }
  const ConstView& view(std::int64_t place) const { return *call->item(0, place); }
  std::int64_t size(std::int64_t place) const { return view(place).size(); }
  /// One tensor's elements in row-major order; it has no result of its own.
  ReductionProblem<1> tensor(std::int64_t place) const {
    const ConstView* views[] = {&view(place)};
    return {row_major_of(views), {views[0]->data}, nullptr, views[0]->dtype, DType::f32};
  }
};

struct ClipByNormNumbers {
  double max_norm;
  const float *norm, *gradient_scale;  ///< gradient_scale null: absent
};
using ClipByNormProblem = ListsProblem<ClipByNormNumbers, 1>;

}  // namespace rooftile
