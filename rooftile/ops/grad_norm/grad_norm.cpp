#include "rooftile/ops/grad_norm/grad_norm.h"

#include "rooftile/ops/grad_norm/grad_norm.problem.h"

namespace rooftile {
namespace {

constexpr Signature kGradNorm{
    "grad_norm",
    {{'G', {DType::f32, DType::f16, DType::bf16}}, {'F', {DType::f32}}},
    {list(input("gradient", 'G', "...")), optional(input("gradient_scale", 'F', "1")),
     output("norm", 'F', "1"), optional(output("coefficient", 'F', "1")),
     optional(output("found_inf", 'F', "1"))},
    {real("max_norm", 1, 0)}};
constexpr Signature kClipByNorm{"clip_by_norm",
                                {{'G', {DType::f32, DType::f16, DType::bf16}}, {'F', {DType::f32}}},
                                {list(in_out("gradient", 'G', "...")), input("norm", 'F', "1"),
                                 optional(input("gradient_scale", 'F', "1"))},
                                {real("max_norm", 1, 0)}};

constexpr Variant kNormVariants[] = {
    {"tile",
     "chunks of 16384 on all threads, scaled where squares leave the range of f32; 160 tensors to a launch",
     Role::standard, detail::takes_any_list}};
constexpr Variant kClipVariants[] = {
    {"tile", "one factor for all; 160 tensors to a launch", Role::standard, detail::takes_any_list}};

float* one(const Call& c, int operand) {
  return c.view(operand).present() ? static_cast<float*>(c.output(operand)) : nullptr;
}
Status launch_norm(const Queue& queue, const Op& op, const Call& c) {
  const GradNormProblem p{{c.options[0], number_of(c.view(1)), one(c, 2), one(c, 3), one(c, 4)}, &c};
  return dispatch(queue, op, &p, c.variant);
}
Status launch_clip(const Queue& queue, const Op& op, const Call& c) {
  const ClipByNormProblem p{{c.options[0], number_of(c.view(1)), number_of(c.view(2))}, &c};
  return dispatch(queue, op, &p, c.variant);
}

}  // namespace

extern const Op grad_norm_op{"grad_norm", "forward", "grad_norm", kNormVariants, kGradNorm, launch_norm};
extern const Op clip_by_norm_op{"clip_by_norm", "forward",   "clip_by_norm",
                                kClipVariants,  kClipByNorm, launch_clip};
extern const Op* const grad_norm_ops[] = {&grad_norm_op, &clip_by_norm_op, nullptr};

Status grad_norm(const Queue& queue, std::span<const ConstView> gradients, ConstView gradient_scale,
                 View norm, View coefficient, View found_inf, const GradNormOptions& o) {
  const ConstView* views[] = {gradients.data(), &gradient_scale, &norm, &coefficient, &found_inf};
  return call(
      queue, grad_norm_op,
      Call{
          views, &o.max_norm, o.variant, {}, static_cast<std::int64_t>(gradients.size()), sizeof(ConstView)});
}

Status clip_by_norm(const Queue& queue, std::span<const View> gradients, ConstView norm,
                    ConstView gradient_scale, const ClipByNormOptions& o) {
  const ConstView* views[] = {gradients.data(), &norm, &gradient_scale};
  return call(
      queue, clip_by_norm_op,
      Call{views, &o.max_norm, o.variant, {}, static_cast<std::int64_t>(gradients.size()), sizeof(View)});
}

}  // namespace rooftile
