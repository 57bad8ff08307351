#include "rooftile/ops/normalize/normalize.h"

#include "rooftile/ops/normalize/normalize.problem.h"

namespace rooftile {
namespace {

constexpr Signature::Types kT =  // the data's
    Signature::Types{'T', {DType::f32, DType::f16, DType::bf16}}.with_on_cpus(DType::f64);
constexpr Signature::Types kF = Signature::Types{'F', {DType::f32}}.wide_with('T');  // norms'

constexpr Signature forward_signature(const char* function) {
  return {function,
          {kT, kF},
          {input("x", 'T', "... C"), output("y", 'T', "... C", "x"), optional(output("norm", 'F', "..."))},
          {real("eps", 1e-12, 0)}};
}
constexpr Signature backward_signature(const char* function) {
  return {function,
          {kT, kF},
          {input("x", 'T', "... C"), input("dy", 'T', "... C"), input("norm", 'F', "..."),
           output("dx", 'T', "... C", "x dy")},
          {real("eps", 1e-12, 0)}};
}
constexpr Signature kL1 = forward_signature("l1_normalize"), kL2 = forward_signature("l2_normalize");
constexpr Signature kL1Backward = backward_signature("l1_normalize_backward"),
                    kL2Backward = backward_signature("l2_normalize_backward");

}  // namespace

extern const Op l1_normalize_op = row_op<kL1, NormalizeProblem>("l1_normalize", "forward");
extern const Op l2_normalize_op = row_op<kL2, NormalizeProblem>("l2_normalize", "forward");
extern const Op l1_normalize_backward_op =
    row_op<kL1Backward, NormalizeBackwardProblem>("l1_normalize", "backward");
extern const Op l2_normalize_backward_op =
    row_op<kL2Backward, NormalizeBackwardProblem>("l2_normalize", "backward");
extern const Op* const normalize_ops[] = {&l1_normalize_op, &l1_normalize_backward_op, &l2_normalize_op,
                                          &l2_normalize_backward_op, nullptr};

Status l1_normalize(const Queue& queue, ConstView x, View y, View norm, const NormalizeOptions& options) {
  return call(queue, l1_normalize_op, {&x, &y, &norm}, {options.eps}, options.variant);
}
Status l2_normalize(const Queue& queue, ConstView x, View y, View norm, const NormalizeOptions& options) {
  return call(queue, l2_normalize_op, {&x, &y, &norm}, {options.eps}, options.variant);
}
Status l1_normalize_backward(const Queue& queue, ConstView x, ConstView dy, ConstView norm, View dx,
                             const NormalizeOptions& options) {
  return call(queue, l1_normalize_backward_op, {&x, &dy, &norm, &dx}, {options.eps}, options.variant);
}
Status l2_normalize_backward(const Queue& queue, ConstView x, ConstView dy, ConstView norm, View dx,
                             const NormalizeOptions& options) {
  return call(queue, l2_normalize_backward_op, {&x, &dy, &norm, &dx}, {options.eps}, options.variant);
}

}  // namespace rooftile
