#include "rooftile/ops/ema/ema.h"

#include "rooftile/ops/ema/ema.problem.h"

namespace rooftile {
namespace {

constexpr Signature kEma{
    "ema",
    {{'A', {DType::f32, DType::f16, DType::bf16}}, {'P', {DType::f32, DType::f16, DType::bf16}}},
    {list(in_out("average", 'A', "...")), list(input("parameter", 'P', "..."))},
    {real("decay", 0.999, 0, 1)}};

constexpr Variant kVariants[] = {{"tile", "any mixture of dtypes in one pass; 120 pairs to a launch",
                                  Role::standard, detail::takes_any_list}};

Status launch(const Queue& queue, const Op& op, const Call& c) {
  const EmaProblem p{{c.options[0]}, &c};
  return dispatch(queue, op, &p, c.variant);
}

}  // namespace

extern const Op ema_op{"ema", "forward", "ema", kVariants, kEma, launch};
extern const Op* const ema_ops[] = {&ema_op, nullptr};

Status ema(const Queue& queue, std::span<const EmaTensors> tensors, const EmaOptions& o) {
  const EmaTensors none{};
  const EmaTensors& first = tensors.empty() ? none : tensors.front();
  const ConstView* views[] = {&first.average, &first.parameter};
  return call(
      queue, ema_op,
      Call{views, &o.decay, o.variant, {}, static_cast<std::int64_t>(tensors.size()), sizeof(EmaTensors)});
}

}  // namespace rooftile
