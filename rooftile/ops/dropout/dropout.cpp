#include "rooftile/ops/dropout/dropout.h"

#include "rooftile/core/signature.h"
#include "rooftile/ops/dropout/dropout.problem.h"

namespace rooftile {
namespace {

constexpr Signature::Types kT{'T', {DType::f32, DType::f16, DType::bf16}};
constexpr Signature::Types kS{'S', {DType::i64, DType::i32}};
constexpr Signature::Option kP = real("p", 0.5, 0, 1);

constexpr Signature kForward{
    "dropout",
    {kT, kS},
    {input("x", 'T', "..."), input("seed", 'S', "1"), optional(input("offset", 'S', "1")),
     optional(input("residual", 'T', "...")), output("y", 'T', "...", "x residual")},
    {kP}};
constexpr Signature kBackward{
    "dropout_backward",
    {kT, kS},
    {input("dy", 'T', "..."), input("seed", 'S', "1"), optional(input("offset", 'S', "1")),
     output("dx", 'T', "...", "dy"), optional(output("dresidual", 'T', "..."))},
    {kP}};

/// y = residual + dropout(x), by the signatures' first three operands and these.
Status launch(const Queue& queue, const Op& op, const Call& call, const ConstView& residual,
              const ConstView& y, double p) {
  const ConstView &x = call.view(0), &seed = call.view(1), &offset = call.view(2);
  const ConstView* const views[] = {&y, &x, residual.present() ? &residual : &y};
  const DropoutProblem problem{
      {row_major_of(views), {y.data, x.data, residual.data}, y.dtype, {}},
      residual.present(),
      {seed.data, offset.present() ? offset.data : nullptr, seed.dtype == DType::i64},
      PhiloxKeep::of(p)};
  return dispatch(queue, op, &problem, call.variant);
}
Status launch_forward(const Queue& queue, const Op& op, const Call& call) {
  return launch(queue, op, call, call.view(3), call.view(4), call.options[0]);
}
Status launch_backward(const Queue& queue, const Op& op, const Call& call) {
  // First, since dx may be dy: a copy is what drops nothing.
  if (const ConstView& copy = call.view(4); copy.present())
    if (Status s = launch(queue, op, call, {}, copy, 0); !s) return s;
  return launch(queue, op, call, {}, call.view(3), call.options[0]);
}

Status takes_all(const void*) { return {}; }
constexpr Variant kVariants[] = {{"tile",
                                  "all threads; the mask from seed and index, four elements to a counter",
                                  Role::standard, takes_all}};

}  // namespace

extern const Op dropout_op{"dropout", "forward", "dropout", kVariants, kForward, launch_forward};
extern const Op dropout_backward_op{"dropout", "backward", "dropout_backward",
                                    kVariants, kBackward,  launch_backward};
extern const Op* const dropout_ops[] = {&dropout_op, &dropout_backward_op, nullptr};

Status dropout(const Queue& queue, const DropoutInputs& in, View y, const DropoutOptions& options) {
  return call(queue, dropout_op, {&in.x, &in.seed, &in.offset, &in.residual, &y}, {options.p},
              options.variant);
}
Status dropout_backward(const Queue& queue, const DropoutBackwardInputs& in,
                        const DropoutBackwardOutputs& out, const DropoutOptions& options) {
  return call(queue, dropout_backward_op, {&in.dy, &in.seed, &in.offset, &out.dx, &out.dresidual},
              {options.p}, options.variant);
}

}  // namespace rooftile
