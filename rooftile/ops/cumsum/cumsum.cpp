#include "rooftile/ops/cumsum/cumsum.h"

#include "rooftile/core/signature.h"
#include "rooftile/ops/cumsum/cumsum.problem.h"

namespace rooftile {
namespace {

constexpr Signature::Types kT{'T', {DType::f32, DType::f16, DType::bf16}};

constexpr Signature kForward{"cumsum",
                             {kT},
                             {input("x", 'T', "... C"), output("y", 'T', "... C", "x")},
                             {flag("exclusive"), flag("reverse")}};
constexpr Signature kBackward{"cumsum_backward",
                              {kT},
                              {input("dy", 'T', "... C"), output("dx", 'T', "... C", "dy")},
                              {flag("exclusive"), flag("reverse")}};

Status launch(const Queue& queue, const Op& op, const Call& c) {
  const ConstView& x = c.view(0);
  const bool backward = &op.signature == &kBackward;
  const CumsumProblem p{rows_of(x, c.view(1)), x.data, c.output(1), x.dtype, c.flag(0),
                        c.flag(1) != backward};
  return dispatch(queue, op, &p, c.variant);
}

Status takes_all(const void*) { return {}; }
constexpr Variant kVariants[] = {
    {"tile", "a row's parts one after the other, each summed across lanes", Role::standard, takes_all}};

}  // namespace

extern const Op cumsum_op{"cumsum", "forward", "cumsum", kVariants, kForward, launch};
extern const Op cumsum_backward_op{"cumsum", "backward", "cumsum_backward", kVariants, kBackward, launch};
extern const Op* const cumsum_ops[] = {&cumsum_op, &cumsum_backward_op, nullptr};

Status cumsum(const Queue& queue, ConstView x, View y, const CumsumOptions& options) {
  return call(queue, cumsum_op, {&x, &y}, {double(options.exclusive), double(options.reverse)},
              options.variant);
}
Status cumsum_backward(const Queue& queue, ConstView dy, View dx, const CumsumOptions& options) {
  return call(queue, cumsum_backward_op, {&dy, &dx}, {double(options.exclusive), double(options.reverse)},
              options.variant);
}

}  // namespace rooftile
