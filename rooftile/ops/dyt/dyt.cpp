#include "rooftile/ops/dyt/dyt.h"

#include "rooftile/ops/dyt/dyt.problem.h"

namespace rooftile {
namespace {

constexpr Signature::Types kT{'T', {DType::f32, DType::f16, DType::bf16}};  // the data's
constexpr Signature::Types kW{'W', {DType::f32}, 'T'};                      // parameters'
constexpr Signature::Types kG{'G', {DType::f32}, 'W'};                      // their gradients'

constexpr Signature kForward{
    "dyt",
    {kT, kW},
    {input("x", 'T', "... C"), input("alpha", 'W', "1"), optional(input("weight", 'W', "C")),
     optional(input("bias", 'W', "C")), output("y", 'T', "... C", "x")}};
constexpr Signature kBackward{"dyt_backward",
                              {kT, kW, kG},
                              {input("x", 'T', "... C"), input("dy", 'T', "... C"), input("alpha", 'W', "1"),
                               optional(input("weight", 'W', "C")), output("dx", 'T', "... C", "x dy"),
                               optional(output("dalpha", 'G', "1")), optional(output("dweight", 'G', "C")),
                               optional(output("dbias", 'G', "C"))}};

/// A backward's views, in the signature's order.
struct BackwardViews {
  const ConstView* all[8];
  BackwardViews(const DytBackwardInputs& in, const DytBackwardOutputs& out)
      : all{&in.x, &in.dy, &in.alpha, &in.weight, &out.dx, &out.dalpha, &out.dweight, &out.dbias} {}
};

}  // namespace

extern const Op dyt_op = row_op<kForward, DytProblem>("dyt", "forward");
extern const Op dyt_backward_op = row_op<kBackward, DytBackwardProblem>("dyt", "backward");
extern const Op* const dyt_ops[] = {&dyt_op, &dyt_backward_op, nullptr};

Status dyt(const Queue& queue, const DytInputs& in, View y, const DytOptions& options) {
  return call(queue, dyt_op, {&in.x, &in.alpha, &in.weight, &in.bias, &y}, {}, options.variant);
}
Status dyt_backward(const Queue& queue, const DytBackwardInputs& in, const DytBackwardOutputs& out,
                    const DytOptions& options, Workspace workspace) {
  return call(queue, dyt_backward_op, Call{BackwardViews(in, out).all, nullptr, options.variant, workspace});
}
Status dyt_backward_workspace(const Queue& queue, const DytBackwardInputs& in, const DytBackwardOutputs& out,
                              std::size_t& bytes) {
  return workspace_of(queue, dyt_backward_op, Call{BackwardViews(in, out).all, nullptr}, bytes);
}

}  // namespace rooftile
