#include "rooftile/ops/adamw_8bit/adamw_8bit.h"

#include "rooftile/ops/adamw_8bit/adamw_8bit.problem.h"

namespace rooftile {
namespace {

constexpr double kMaxBeta = 0.999999;
constexpr Signature kAdamw8bit{
    "adamw_8bit",
    {{'T', {DType::f32, DType::f16, DType::bf16}},
     {'G', {DType::f32, DType::f16, DType::bf16}},
     {'U', {DType::u8}},
     {'F', {DType::f32}},
     {'I', {DType::i64}}},
    {list(in_out("parameter", 'T', "...")), list(input("gradient", 'G', "...")),
     list(in_out("m", 'U', "...")), list(in_out("v", 'U', "...")),
     list(optional(in_out("master", 'F', "..."))), list(in_out("m_absmax", 'F', "B")),
     list(in_out("v_absmax", 'F', "B")), optional(in_out("steps", 'I', "1")),
     optional(input("gradient_scale", 'F', "1")), optional(input("found_inf", 'F', "1"))},
    {real("lr", 1e-3, 0), real("beta1", 0.9, 0, kMaxBeta), real("beta2", 0.999, 0, kMaxBeta),
     real("eps", 1e-8, 0), real("weight_decay", 0.01, 0), flag("maximize"), whole("step", 0, 0)},
    "B = (outer + 255)/256"};

constexpr Variant kVariants[] = {
    {"tile", "a block of 256 to a warp; 53 tensors to a launch", Role::standard, detail::takes_any_list}};

Status launch(const Queue& queue, const Op& op, const Call& c) {
  constexpr int kSteps = k8bitLists, kScale = kSteps + 1, kFound = kSteps + 2;
  const Adamw8bitProblem p{
      {c.options[0], c.options[1], c.options[2], c.options[3], c.options[4], false, c.flag(5), c.whole(6),
       c.view(kSteps).present() ? static_cast<std::int64_t*>(c.output(kSteps)) : nullptr,
       number_of(c.view(kScale)), number_of(c.view(kFound))},
      &c};
  if (!p.numbers.steps && p.numbers.step == 0)
    return Status::error(
        "adamw_8bit: step is 0 and steps is absent: pass this step's number, from 1 on, as step, or a "
        "counter "
        "as steps");
  return dispatch(queue, op, &p, c.variant);
}

}  // namespace

extern const Op adamw_8bit_op{"adamw_8bit", "forward", "adamw_8bit", kVariants, kAdamw8bit, launch};
extern const Op* const adamw_8bit_ops[] = {&adamw_8bit_op, nullptr};

Status adamw_8bit(const Queue& queue, std::span<const Adamw8bitTensors> tensors, View steps,
                  ConstView gradient_scale, ConstView found_inf, const Adamw8bitOptions& o) {
  const Adamw8bitTensors none{};
  const Adamw8bitTensors& first = tensors.empty() ? none : tensors.front();
  const ConstView* views[] = {&first.parameter, &first.gradient, &first.m, &first.v,        &first.master,
                              &first.m_absmax,  &first.v_absmax, &steps,   &gradient_scale, &found_inf};
  const double options[] = {
      o.lr, o.beta1, o.beta2, o.eps, o.weight_decay, double(o.maximize), static_cast<double>(o.step)};
  return call(queue, adamw_8bit_op,
              Call{views,
                   options,
                   o.variant,
                   {},
                   static_cast<std::int64_t>(tensors.size()),
                   sizeof(Adamw8bitTensors)});
}

}  // namespace rooftile
