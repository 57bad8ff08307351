#include "rooftile/ops/loss_scale/loss_scale.h"

#include "rooftile/ops/loss_scale/loss_scale.problem.h"

namespace rooftile {
namespace {

constexpr Signature kUnscale{
    "unscale",
    {{'G', {DType::f32, DType::f16, DType::bf16}}, {'F', {DType::f32}}},
    {list(in_out("gradient", 'G', "...")), input("scale", 'F', "1"), output("found_inf", 'F', "1")}};
constexpr Signature kUpdate{
    "update_loss_scale",
    {{'F', {DType::f32}}, {'I', {DType::i32}}},
    {in_out("scale", 'F', "1"), in_out("growth_tracker", 'I', "1"), input("found_inf", 'F', "1")},
    {real("growth_factor", 2, 1), real("backoff_factor", 0.5, 0, 1),
     whole("growth_interval", 2000, 1, 2147483647)}};

constexpr Variant kUnscaleVariants[] = {{"tile", "checked and scaled in one pass; 160 tensors to a launch",
                                         Role::standard, detail::takes_any_list}};
constexpr Variant kUpdateVariants[] = {
    {"tile", "one thread, where the numbers are", Role::standard, detail::takes_any_list}};

Status launch_unscale(const Queue& queue, const Op& op, const Call& c) {
  const UnscaleProblem p{{number_of(c.view(1)), static_cast<float*>(c.output(2))}, &c};
  return dispatch(queue, op, &p, c.variant);
}
Status launch_update(const Queue& queue, const Op& op, const Call& c) {
  const UpdateLossScaleNumbers n{c.options[0],
                                 c.options[1],
                                 c.whole(2),
                                 static_cast<float*>(c.output(0)),
                                 static_cast<std::int32_t*>(c.output(1)),
                                 number_of(c.view(2))};
  return dispatch(queue, op, &n, c.variant);
}

}  // namespace

extern const Op unscale_op{"unscale", "forward", "unscale", kUnscaleVariants, kUnscale, launch_unscale};
extern const Op update_loss_scale_op{"update_loss_scale", "forward", "update_loss_scale",
                                     kUpdateVariants,     kUpdate,   launch_update};
extern const Op* const loss_scale_ops[] = {&unscale_op, &update_loss_scale_op, nullptr};

Status unscale(const Queue& queue, std::span<const View> gradients, ConstView scale, View found_inf,
               const UnscaleOptions& o) {
  const ConstView* views[] = {gradients.data(), &scale, &found_inf};
  return call(queue, unscale_op,
              Call{views, nullptr, o.variant, {}, static_cast<std::int64_t>(gradients.size()), sizeof(View)});
}

Status update_loss_scale(const Queue& queue, View scale, View growth_tracker, ConstView found_inf,
                         const UpdateLossScaleOptions& o) {
  return call(queue, update_loss_scale_op, {&scale, &growth_tracker, &found_inf},
              {o.growth_factor, o.backoff_factor, static_cast<double>(o.growth_interval)}, o.variant);
}

}  // namespace rooftile
