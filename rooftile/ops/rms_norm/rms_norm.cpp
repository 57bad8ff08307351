#include "rooftile/ops/rms_norm/rms_norm.h"

#include "rooftile/ops/rms_norm/rms_norm.problem.h"

namespace rooftile {
namespace {

constexpr Signature::Types kT =  // the data's
    Signature::Types{'T', {DType::f32, DType::f16, DType::bf16}}.with_on_cpus(DType::f64);
constexpr Signature::Types kW{'W', {DType::f32}, 'T'};                               // weights'
constexpr Signature::Types kG{'G', {DType::f32}, 'W'};                               // their gradients'
constexpr Signature::Types kF = Signature::Types{'F', {DType::f32}}.wide_with('T');  // statistics'

constexpr Signature kForward{"rms_norm",
                             {kT, kW, kF},
                             {input("x", 'T', "... C"), optional(input("residual", 'T', "... C")),
                              optional(input("weight", 'W', "C")), output("y", 'T', "... C", "x residual"),
                              sum_of("x residual", optional(output("sum", 'T', "... C", "x residual"))),
                              optional(output("rstd", 'F', "..."))},
                             {real("eps", 1e-6, 0), flag("unit_offset")}};
constexpr Signature kBackward{
    "rms_norm_backward",
    {kT, kW, kF, kG},
    {input("x", 'T', "... C"), input("dy", 'T', "... C"), optional(input("weight", 'W', "C")),
     input("rstd", 'F', "..."), output("dx", 'T', "... C", "x dy"), optional(output("dweight", 'G', "C"))},
    {flag("unit_offset")}};

/// A backward's views, in the signature's order.
struct BackwardViews {
  const ConstView* all[6];
  BackwardViews(const RmsNormBackwardInputs& in, const RmsNormBackwardOutputs& out)
      : all{&in.x, &in.dy, &in.weight, &in.rstd, &out.dx, &out.dweight} {}
};

}  // namespace

extern const Op rms_norm_op = row_op<kForward, RmsNormProblem>("rms_norm", "forward");
extern const Op rms_norm_backward_op = row_op<kBackward, RmsNormBackwardProblem>("rms_norm", "backward");
extern const Op* const rms_norm_ops[] = {&rms_norm_op, &rms_norm_backward_op, nullptr};

Status rms_norm(const Queue& queue, const RmsNormInputs& in, const RmsNormOutputs& out,
                const RmsNormOptions& options) {
  return call(queue, rms_norm_op, {&in.x, &in.residual, &in.weight, &out.y, &out.sum, &out.rstd},
              {options.eps, double(options.unit_offset)}, options.variant);
}
Status rms_norm_backward(const Queue& queue, const RmsNormBackwardInputs& in,
                         const RmsNormBackwardOutputs& out, const RmsNormOptions& options,
                         Workspace workspace) {
  const double unit_offset = options.unit_offset;
  return call(queue, rms_norm_backward_op,
              Call{BackwardViews(in, out).all, &unit_offset, options.variant, workspace});
}
Status rms_norm_backward_workspace(const Queue& queue, const RmsNormBackwardInputs& in,
                                   const RmsNormBackwardOutputs& out, std::size_t& bytes) {
  const double unit_offset = 0;
  return workspace_of(queue, rms_norm_backward_op, Call{BackwardViews(in, out).all, &unit_offset}, bytes);
}

}  // namespace rooftile
