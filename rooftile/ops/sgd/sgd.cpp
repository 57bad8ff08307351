#include "rooftile/ops/sgd/sgd.h"

#include "rooftile/ops/sgd/sgd.problem.h"

namespace rooftile {
namespace {

constexpr Signature kSgd{
    "sgd",
    {{'T', {DType::f32, DType::f16, DType::bf16}},
     {'G', {DType::f32, DType::f16, DType::bf16}},
     {'S', {DType::f32}, 'T'},
     {'F', {DType::f32}},
     {'I', {DType::i64}}},
    {list(in_out("parameter", 'T', "...")), list(input("gradient", 'G', "...")),
     list(optional(in_out("momentum_buffer", 'S', "..."))), list(optional(in_out("master", 'F', "..."))),
     optional(in_out("steps", 'I', "1")), optional(input("gradient_scale", 'F', "1")),
     optional(input("found_inf", 'F', "1"))},
    {real("lr", 1e-3, 0), real("momentum", 0, 0), real("dampening", 0), real("weight_decay", 0, 0),
     flag("nesterov"), flag("maximize"), whole("step", 0, 0)}};

constexpr Variant kVariants[] = {{"tile", "all states of an element in one pass; 80 tensors to a launch",
                                  Role::standard, detail::takes_any_list}};

/// What has no meaning without a buffer would be left out without a word.
Status buffers(const SgdNumbers& n, const Call& c) {
  if (n.momentum == 0 && n.dampening == 0 && !n.nesterov) return {};
  for (std::int64_t i = 0; i < c.tensors; ++i) {
    const ConstView* buffer = c.item(kSgdBuffer, i);
    if (!buffer || !buffer->present())
      return Status::error(
          "sgd: momentum is %g, dampening %g, nesterov %d, and momentum_buffer[%lld] is absent: pass one for "
          "each parameter, or momentum and dampening 0",
          n.momentum, n.dampening, int(n.nesterov), static_cast<long long>(i));
  }
  return {};
}

Status launch(const Queue& queue, const Op& op, const Call& c) {
  constexpr int kSteps = kSgdLists, kScale = kSteps + 1, kFound = kSteps + 2;
  const SgdProblem p{
      {c.options[0], c.options[1], c.options[2], c.options[3], c.flag(4), c.flag(5), c.whole(6),
       c.view(kSteps).present() ? static_cast<std::int64_t*>(c.output(kSteps)) : nullptr,
       number_of(c.view(kScale)), number_of(c.view(kFound))},
      &c};
  if (Status s = buffers(p.numbers, c); !s) return s;
  if (p.numbers.dampening != 0 && !p.numbers.steps && p.numbers.step == 0)
    return Status::error(
        "sgd: dampening is %g, step is 0 and steps is absent, and step 1 has no dampening: pass this step's "
        "number, from 1 on, as step, or a counter as steps",
        p.numbers.dampening);
  return dispatch(queue, op, &p, c.variant);
}

}  // namespace

extern const Op sgd_op{"sgd", "forward", "sgd", kVariants, kSgd, launch};
extern const Op* const sgd_ops[] = {&sgd_op, nullptr};

Status sgd(const Queue& queue, std::span<const SgdTensors> tensors, View steps, ConstView gradient_scale,
           ConstView found_inf, const SgdOptions& o) {
  const SgdTensors none{};
  const SgdTensors& first = tensors.empty() ? none : tensors.front();
  const ConstView* views[] = {&first.parameter, &first.gradient, &first.momentum_buffer,
                              &first.master,    &steps,          &gradient_scale,
                              &found_inf};
  const double options[] = {o.lr,
                            o.momentum,
                            o.dampening,
                            o.weight_decay,
                            double(o.nesterov),
                            double(o.maximize),
                            static_cast<double>(o.step)};
  return call(
      queue, sgd_op,
      Call{views, options, o.variant, {}, static_cast<std::int64_t>(tensors.size()), sizeof(SgdTensors)});
}

}  // namespace rooftile
