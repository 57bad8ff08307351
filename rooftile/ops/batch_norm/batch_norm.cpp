#include "rooftile/ops/batch_norm/batch_norm.h"

#include <cmath>

#include "rooftile/core/check.h"
#include "rooftile/core/signature.h"
#include "rooftile/ops/batch_norm/batch_norm.problem.h"

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

NormVector vector_of(const Call& c, int operand) {
  const ConstView& view = c.view(operand);
  if (!view.present()) return {};
  return {const_cast<void*>(view.data), view.shape[0] > 1 ? view.stride[0] : 1, view.dtype};
}
/// {C} of x, whose S is N's place where it is 1: columns {N, C} are summed as planes of N.
bool columns_alone(const ConstView& x) { return x.shape[2] == 1; }

std::int64_t padded(std::int64_t n) { return (n + 15) / 16 * 16; }
struct Parts {
  std::int64_t partial = 0, numbers = 0;  ///< floats
};
NormSegments segments_of(const ConstView& x) {
  return columns_alone(x) ? NormSegments(1, x.shape[0]) : NormSegments(x.shape[0], x.shape[2]);
}
std::size_t numbers_bytes(const Queue&, const Call& c) {
  return static_cast<std::size_t>(kNormNumbers * padded(c.view(0).shape[1])) * sizeof(float);
}
std::size_t workspace_bytes(const Queue& queue, const Call& c) {
  const std::int64_t sums = segments_of(c.view(0)).count * c.view(0).shape[1] * 3;
  return numbers_bytes(queue, c) + static_cast<std::size_t>(padded(sums)) * sizeof(float);
}

/// Merges N and S where one is 1; picks the dimension along which elements are computed.
BatchNormProblem problem_of(const Call& c, const ConstView& y, const ConstView& x, const ConstView& dy) {
  BatchNormProblem p{};
  const bool alone = columns_alone(x);
  p.n = alone ? 1 : x.shape[0], p.c = x.shape[1], p.s = alone ? x.shape[0] : x.shape[2];
  p.segments = segments_of(x);
  const auto tensor = [&](const ConstView& v) {
    return NormTensor{v.data, alone ? 0 : v.stride[0], p.c > 1 ? v.stride[1] : 1,
                      p.s > 1 ? v.stride[alone ? 0 : 2] : 1};
  };
  const NormTensor of[] = {tensor(y), tensor(x), tensor(dy)};
  p.x = of[1], p.dy = of[2];
  // Rows along C where channels are contiguous and a plane's elements are not.
  const auto contiguous = [&](std::int64_t NormTensor::*stride) {
    int n = 0;
    for (const NormTensor& t : of) n += t.*stride == 1;
    return n;
  };
  p.along_channels = p.c > 1 && contiguous(&NormTensor::c) > contiguous(&NormTensor::s);
  ConstView views[3];
  for (int k = 0; k < 3; ++k) {
    const Extent shape[] = {p.n, p.along_channels ? p.s : p.c, p.along_channels ? p.c : p.s};
    const Extent stride[] = {of[k].n, p.along_channels ? of[k].s : of[k].c,
                             p.along_channels ? of[k].c : of[k].s};
    views[k] = detail::make_view<ConstView>(of[k].data, x.dtype, 3, shape, stride);
    p.data[k] = of[k].data;
  }
  p.rows = rows_of(views[0], views[1], views[2]);
  p.dtype = x.dtype;
  p.numbers = static_cast<float*>(c.workspace.pointer);
  p.numbers_stride = padded(p.c);
  p.partial = p.numbers + kNormNumbers * p.numbers_stride;
  return p;
}

Status launch_forward(const Queue& queue, const Op& op, const Call& c) {
  const ConstView& x = c.view(0);
  BatchNormProblem p = problem_of(c, c.view(5), x, x);
  if (p.n * p.s == 1 && p.c > 0)
    return Status::error(
        "batch_norm: x is %s: a channel has 1 element, whose variance says nothing; training needs 2 at "
        "least; use batch_norm_inference",
        describe(x).text);
  for (int k : {0, 1})
    if (c.view(8 + k).present() && !c.view(3 + k).present())
      return Status::error("batch_norm: new_running_%s is given, running_%s is absent", k ? "var" : "mean",
                           k ? "var" : "mean");
  p.weight = vector_of(c, 1), p.bias = vector_of(c, 2);
  p.running_mean = vector_of(c, 3), p.running_var = vector_of(c, 4);
  p.mean = vector_of(c, 6), p.rstd = vector_of(c, 7);
  p.new_mean = vector_of(c, 8), p.new_var = vector_of(c, 9);
  p.eps = c.options[0], p.momentum = c.options[1];
  return dispatch(queue, op, &p, c.variant);
}
Status launch_inference(const Queue& queue, const Op& op, const Call& c) {
  BatchNormProblem p = problem_of(c, c.view(5), c.view(0), c.view(0));
  p.weight = vector_of(c, 1), p.bias = vector_of(c, 2);
  p.running_mean = vector_of(c, 3), p.running_var = vector_of(c, 4);
  p.eps = c.options[0];
  return dispatch(queue, op, &p, c.variant);
}
Status launch_backward(const Queue& queue, const Op& op, const Call& c) {
  BatchNormProblem p = problem_of(c, c.view(5), c.view(0), c.view(1));
  p.weight = vector_of(c, 2);
  p.mean = vector_of(c, 3), p.rstd = vector_of(c, 4);
  p.dweight = vector_of(c, 6), p.dbias = vector_of(c, 7);
  return dispatch(queue, op, &p, c.variant);
}

Status any(const void*) { return {}; }
constexpr Variant kVariants[] = {
    {"tile", "sums of segments about a shift, joined in f64; then each element", Role::standard, any}};

/// {N, C, …} as {N, C, S}: dimensions past the second merged where one stride covers them.
struct Folded {
  ConstView view;
  explicit Folded(const ConstView& v) : view(v) {
    if (!v.present() || v.rank < 2 || v.rank == 3 || v.rank > kMaxRank) return;
    std::int64_t size = 1, stride = 1;
    for (int d = v.rank - 1; d >= 2; --d) {
      if (v.shape[d] != 1 && size != 1 && v.stride[d] != stride * size) return;  // refused by its rank
      if (v.shape[d] != 1 && size == 1) stride = v.stride[d];
      size *= v.shape[d];
    }
    view.rank = 3;
    view.shape[2] = size, view.stride[2] = stride;
  }
};

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
