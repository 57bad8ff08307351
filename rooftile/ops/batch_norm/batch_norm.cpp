#include "rooftile/ops/batch_norm/batch_norm.h"

#include "rooftile/core/check.h"
#include "rooftile/ops/batch_norm/batch_norm.call.h"

namespace rooftile {
namespace {

constexpr Signature::Types kT{'T', {DType::f32, DType::f16, DType::bf16}};  // the data's
constexpr Signature::Types kW{'W', {DType::f32}, 'T'};                      // weights'
constexpr Signature::Types kG{'G', {DType::f32}, 'W'};                      // their gradients'
constexpr Signature::Types kF{'F', {DType::f32}};                           // statistics'
constexpr Signature::Option kEps = real("eps", 1e-5f, 0);

constexpr Signature kForward{
    "batch_norm",
    {kT, kW, kF},
    {input("x", 'T', "N C S"), optional(input("weight", 'W', "C")), optional(input("bias", 'W', "C")),
     optional(input("running_mean", 'F', "C")), optional(input("running_var", 'F', "C")),
     output("y", 'T', "N C S", "x"), optional(output("mean", 'F', "C")), optional(output("rstd", 'F', "C")),
     optional(output("new_running_mean", 'F', "C", "running_mean")),
     optional(output("new_running_var", 'F', "C", "running_var"))},
    {kEps, real("momentum", 0.1f, 0, 1)}};
constexpr Signature kInference{
    "batch_norm_inference",
    {kT, kW, kF},
    {input("x", 'T', "N C S"), optional(input("weight", 'W', "C")), optional(input("bias", 'W', "C")),
     input("running_mean", 'F', "C"), input("running_var", 'F', "C"), output("y", 'T', "N C S", "x")},
    {kEps}};
constexpr Signature kBackward{
    "batch_norm_backward",
    {kT, kW, kF, kG},
    {input("x", 'T', "N C S"), input("dy", 'T', "N C S"), optional(input("weight", 'W', "C")),
     input("mean", 'F', "C"), input("rstd", 'F', "C"), output("dx", 'T', "N C S", "x dy"),
     optional(output("dweight", 'G', "C")), optional(output("dbias", 'G', "C"))}};

std::size_t numbers_bytes(const Queue&, const Call& c) { return norm_workspace(c.view(0), false, false); }
std::size_t workspace_bytes(const Queue&, const Call& c) { return norm_workspace(c.view(0), false, true); }

Status launch_forward(const Queue& queue, const Op& op, const Call& c) {
  const ConstView& x = c.view(0);
  BatchNormProblem p = norm_problem(c, c.view(5), x, x, 0);
  if (p.n * p.s == 1 && p.c > 0)
    return Status::error(
        "batch_norm: x is %s: a channel has 1 element, whose variance says nothing; training needs 2 at "
        "least; use batch_norm_inference",
        describe(x).text);
  for (int k : {0, 1})
    if (c.view(8 + k).present() && !c.view(3 + k).present())
      return Status::error("batch_norm: new_running_%s is given, running_%s is absent", k ? "var" : "mean",
                           k ? "var" : "mean");
  p.weight = norm_vector(c, 1), p.bias = norm_vector(c, 2);
  p.running_mean = norm_vector(c, 3), p.running_var = norm_vector(c, 4);
  p.mean = norm_vector(c, 6), p.rstd = norm_vector(c, 7);
  p.new_mean = norm_vector(c, 8), p.new_var = norm_vector(c, 9);
  p.eps = c.options[0], p.momentum = c.options[1];
  return dispatch(queue, op, &p, c.variant);
}
Status launch_inference(const Queue& queue, const Op& op, const Call& c) {
  BatchNormProblem p = norm_problem(c, c.view(5), c.view(0), c.view(0), 0);
  p.weight = norm_vector(c, 1), p.bias = norm_vector(c, 2);
  p.running_mean = norm_vector(c, 3), p.running_var = norm_vector(c, 4);
  p.eps = c.options[0];
  return dispatch(queue, op, &p, c.variant);
}
Status launch_backward(const Queue& queue, const Op& op, const Call& c) {
  BatchNormProblem p = norm_problem(c, c.view(5), c.view(0), c.view(1), 0);
  p.weight = norm_vector(c, 2);
  p.mean = norm_vector(c, 3), p.rstd = norm_vector(c, 4);
  p.dweight = norm_vector(c, 6), p.dbias = norm_vector(c, 7);
  return dispatch(queue, op, &p, c.variant);
}

Status any(const void*) { return {}; }
constexpr Variant kVariants[] = {
    {"tile", "sums of segments about a shift, joined in f64; then each element", Role::standard, any}};

struct ForwardViews {
  Folded x, y;
  const ConstView* all[10];
  ForwardViews(const BatchNormInputs& in, const BatchNormOutputs& out)
      : x(in.x), y(out.y), all{&x.view, &in.weight, &in.bias,  &in.running_mean,      &in.running_var,
                               &y.view, &out.mean,  &out.rstd, &out.new_running_mean, &out.new_running_var} {}
};
struct InferenceViews {
  Folded x, y;
  const ConstView* all[6];
  InferenceViews(const BatchNormInferenceInputs& in, const ConstView& out)
      : x(in.x), y(out), all{&x.view, &in.weight, &in.bias, &in.running_mean, &in.running_var, &y.view} {}
};
struct BackwardViews {
  Folded x, dy, dx;
  const ConstView* all[8];
  BackwardViews(const BatchNormBackwardInputs& in, const BatchNormBackwardOutputs& out)
      : x(in.x), dy(in.dy), dx(out.dx), all{&x.view,  &dy.view, &in.weight,   &in.mean,
                                            &in.rstd, &dx.view, &out.dweight, &out.dbias} {}
};

}  // namespace

extern const Op batch_norm_op{"batch_norm", "forward",      "batch_norm",   kVariants,
                              kForward,     launch_forward, workspace_bytes};
extern const Op batch_norm_inference_op{
    "batch_norm_inference", "forward",    "batch_norm_inference", kVariants, kInference,
    launch_inference,       numbers_bytes};
extern const Op batch_norm_backward_op{"batch_norm", "backward",      "batch_norm_backward", kVariants,
                                       kBackward,    launch_backward, workspace_bytes};
extern const Op* const batch_norm_ops[] = {&batch_norm_op, &batch_norm_inference_op, &batch_norm_backward_op,
                                           nullptr};

Status batch_norm(const Queue& queue, const BatchNormInputs& in, const BatchNormOutputs& out,
                  const BatchNormOptions& options, Workspace workspace) {
  const double values[] = {options.eps, options.momentum};
  return call(queue, batch_norm_op, Call{ForwardViews(in, out).all, values, options.variant, workspace});
}
Status batch_norm_workspace(const Queue& queue, const BatchNormInputs& in, const BatchNormOutputs& out,
                            std::size_t& bytes) {
  const double values[] = {0, 0};
  return workspace_of(queue, batch_norm_op, Call{ForwardViews(in, out).all, values}, bytes);
}
Status batch_norm_inference(const Queue& queue, const BatchNormInferenceInputs& in, View y,
                            const BatchNormOptions& options, Workspace workspace) {
  const double values[] = {options.eps};
  return call(queue, batch_norm_inference_op,
              Call{InferenceViews(in, y).all, values, options.variant, workspace});
}
Status batch_norm_inference_workspace(const Queue& queue, const BatchNormInferenceInputs& in, View y,
                                      std::size_t& bytes) {
  const double values[] = {0};
  return workspace_of(queue, batch_norm_inference_op, Call{InferenceViews(in, y).all, values}, bytes);
}
Status batch_norm_backward(const Queue& queue, const BatchNormBackwardInputs& in,
                           const BatchNormBackwardOutputs& out, const BatchNormOptions& options,
                           Workspace workspace) {
  return call(queue, batch_norm_backward_op,
              Call{BackwardViews(in, out).all, nullptr, options.variant, workspace});
}
Status batch_norm_backward_workspace(const Queue& queue, const BatchNormBackwardInputs& in,
                                     const BatchNormBackwardOutputs& out, std::size_t& bytes) {
  return workspace_of(queue, batch_norm_backward_op, Call{BackwardViews(in, out).all, nullptr}, bytes);
}

}  // namespace rooftile
