#include "rooftile/ops/group_norm/group_norm.h"

#include "rooftile/ops/batch_norm/batch_norm.call.h"

namespace rooftile {
namespace {

constexpr Signature::Types kT{'T', {DType::f32, DType::f16, DType::bf16}};  // the data's
constexpr Signature::Types kW{'W', {DType::f32}, 'T'};                      // weights'
constexpr Signature::Types kD{'D', {DType::f32}, 'W'};                      // their gradients'
constexpr Signature::Types kF{'F', {DType::f32}};                           // statistics'
constexpr const char* kWhere = "G = groups; C % groups = 0";

constexpr Signature kForward{"group_norm",
                             {kT, kW, kF},
                             {input("x", 'T', "N C S"), optional(input("weight", 'W', "C")),
                              optional(input("bias", 'W', "C")), output("y", 'T', "N C S", "x"),
                              optional(output("mean", 'F', "N G")), optional(output("rstd", 'F', "N G"))},
                             {whole("groups", 1, 1), real("eps", 1e-5f, 0)},
                             kWhere};
constexpr Signature kBackward{
    "group_norm_backward",
    {kT, kW, kF, kD},
    {input("x", 'T', "N C S"), input("dy", 'T', "N C S"), optional(input("weight", 'W', "C")),
     input("mean", 'F', "N G"), input("rstd", 'F', "N G"), output("dx", 'T', "N C S", "x dy"),
     optional(output("dweight", 'D', "C")), optional(output("dbias", 'D', "C"))},
    {whole("groups", 1, 1)},
    kWhere};

Status launch_forward(const Queue& queue, const Op& op, const Call& c) {
  BatchNormProblem p = norm_problem(c, c.view(3), c.view(0), c.view(0), c.whole(0));
  p.weight = norm_vector(c, 1), p.bias = norm_vector(c, 2);
  p.mean = norm_vector(c, 4), p.rstd = norm_vector(c, 5);
  p.eps = c.options[1];
  return dispatch(queue, op, &p, c.variant);
}
Status launch_backward(const Queue& queue, const Op& op, const Call& c) {
  BatchNormProblem p = norm_problem(c, c.view(5), c.view(0), c.view(1), c.whole(0));
  p.weight = norm_vector(c, 2);
  p.mean = norm_vector(c, 3), p.rstd = norm_vector(c, 4);
  p.dweight = norm_vector(c, 6), p.dbias = norm_vector(c, 7);
  return dispatch(queue, op, &p, c.variant);
}
std::size_t workspace_bytes(const Queue&, const Call& c) { return norm_workspace(c.view(0), true, true); }

Status any(const void*) { return {}; }
constexpr Variant kVariants[] = {
    {"tile", "batch_norm's sums of segments, joined in f64 for each sample's groups", Role::standard, any}};

struct ForwardViews {
  Folded x, y;
  const ConstView* all[6];
  ForwardViews(const GroupNormInputs& in, const GroupNormOutputs& out)
      : x(in.x), y(out.y), all{&x.view, &in.weight, &in.bias, &y.view, &out.mean, &out.rstd} {}
};
struct BackwardViews {
  Folded x, dy, dx;
  const ConstView* all[8];
  BackwardViews(const GroupNormBackwardInputs& in, const GroupNormBackwardOutputs& out)
      : x(in.x), dy(in.dy), dx(out.dx), all{&x.view,  &dy.view, &in.weight,   &in.mean,
                                            &in.rstd, &dx.view, &out.dweight, &out.dbias} {}
};

}  // namespace

extern const Op group_norm_op{"group_norm", "forward",      "group_norm",   kVariants,
                              kForward,     launch_forward, workspace_bytes};
extern const Op group_norm_backward_op{"group_norm", "backward",      "group_norm_backward", kVariants,
                                       kBackward,    launch_backward, workspace_bytes};
extern const Op* const group_norm_ops[] = {&group_norm_op, &group_norm_backward_op, nullptr};

Status group_norm(const Queue& queue, const GroupNormInputs& in, const GroupNormOutputs& out,
                  const GroupNormOptions& options, Workspace workspace) {
  const double values[] = {static_cast<double>(options.groups), options.eps};
  return call(queue, group_norm_op, Call{ForwardViews(in, out).all, values, options.variant, workspace});
}
Status group_norm_workspace(const Queue& queue, const GroupNormInputs& in, const GroupNormOutputs& out,
                            const GroupNormOptions& options, std::size_t& bytes) {
  const double values[] = {static_cast<double>(options.groups), options.eps};
  return workspace_of(queue, group_norm_op, Call{ForwardViews(in, out).all, values}, bytes);
}
Status group_norm_backward(const Queue& queue, const GroupNormBackwardInputs& in,
                           const GroupNormBackwardOutputs& out, const GroupNormOptions& options,
                           Workspace workspace) {
  const double values[] = {static_cast<double>(options.groups)};
  return call(queue, group_norm_backward_op,
              Call{BackwardViews(in, out).all, values, options.variant, workspace});
}
Status group_norm_backward_workspace(const Queue& queue, const GroupNormBackwardInputs& in,
                                     const GroupNormBackwardOutputs& out, const GroupNormOptions& options,
                                     std::size_t& bytes) {
  const double values[] = {static_cast<double>(options.groups)};
  return workspace_of(queue, group_norm_backward_op, Call{BackwardViews(in, out).all, values}, bytes);
}

}  // namespace rooftile
