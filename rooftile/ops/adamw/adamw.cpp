#include "rooftile/ops/adamw/adamw.h"

#include "rooftile/ops/adamw/adamw.problem.h"

namespace rooftile {
namespace {

constexpr double kMaxBeta = 0.999999;
constexpr Signature kAdamw{
    "adamw",
    {{'T', {DType::f32, DType::f16, DType::bf16}},
     {'G', {DType::f32, DType::f16, DType::bf16}},
     {'S', {DType::f32}, 'T'},
     {'F', {DType::f32}},
     {'I', {DType::i64}}},
    {list(in_out("parameter", 'T', "...")), list(input("gradient", 'G', "...")),
     list(in_out("m", 'S', "...")), list(in_out("v", 'S', "...")),
     list(optional(in_out("max_v", 'S', "..."))), list(optional(in_out("master", 'F', "..."))),
     optional(in_out("steps", 'I', "1")), optional(input("gradient_scale", 'F', "1")),
     optional(input("found_inf", 'F', "1"))},
    {real("lr", 1e-3, 0), real("beta1", 0.9, 0, kMaxBeta), real("beta2", 0.999, 0, kMaxBeta),
     real("eps", 1e-8, 0), real("weight_decay", 0.01, 0), flag("l2"), flag("maximize"), whole("step", 0, 0)}};

constexpr Variant kVariants[] = {{"tile", "all states of an element in one pass; 60 tensors to a launch",
                                  Role::standard, detail::takes_any_list}};

Status launch(const Queue& queue, const Op& op, const Call& c) {
  constexpr int kSteps = kAdamwLists, kScale = kSteps + 1, kFound = kSteps + 2;
  const AdamwProblem p{
      {c.options[0], c.options[1], c.options[2], c.options[3], c.options[4], c.flag(5), c.flag(6), c.whole(7),
       c.view(kSteps).present() ? static_cast<std::int64_t*>(c.output(kSteps)) : nullptr,
       number_of(c.view(kScale)), number_of(c.view(kFound))},
      &c};
  if (!p.numbers.steps && p.numbers.step == 0)
    return Status::error(
        "adamw: step is 0 and steps is absent: pass this step's number, from 1 on, as step, or a counter as "
        "steps");
  return dispatch(queue, op, &p, c.variant);
}

}  // namespace

extern const Op adamw_op{"adamw", "forward", "adamw", kVariants, kAdamw, launch};
extern const Op* const adamw_ops[] = {&adamw_op, nullptr};

Status adamw(const Queue& queue, std::span<const AdamwTensors> tensors, View steps, ConstView gradient_scale,
             ConstView found_inf, const AdamwOptions& o) {
  const AdamwTensors none{};
  const AdamwTensors& first = tensors.empty() ? none : tensors.front();
  const ConstView* views[] = {&first.parameter, &first.gradient, &first.m,        &first.v,  &first.max_v,
                              &first.master,    &steps,          &gradient_scale, &found_inf};
  const double options[] = {o.lr,
                            o.beta1,
                            o.beta2,
                            o.eps,
                            o.weight_decay,
                            double(o.l2),
                            double(o.maximize),
                            static_cast<double>(o.step)};
  return call(
      queue, adamw_op,
      Call{views, options, o.variant, {}, static_cast<std::int64_t>(tensors.size()), sizeof(AdamwTensors)});
}

}  // namespace rooftile
