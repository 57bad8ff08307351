#include "rooftile/ops/row_reduce/row_reduce.h"

#include "rooftile/core/check.h"
#include "rooftile/core/row_problem.h"
#include "rooftile/ops/row_reduce/row_reduce.problem.h"

namespace rooftile {
namespace {

constexpr Signature::Types kT{'T', {DType::f32, DType::f16, DType::bf16}};
constexpr Signature::Types kI{'I', {DType::i64}};
constexpr Signature::Option kKind = choice("kind", "sum mean max min logsumexp product");

constexpr Signature kReduce{"row_reduce", {kT}, {input("x", 'T', "... C"), output("y", 'T', "...")}, {kKind}};
constexpr Signature kBackward{"row_reduce_backward",
                              {kT},
                              {input("x", 'T', "... C"), input("y", 'T', "..."), input("dy", 'T', "..."),
                               output("dx", 'T', "... C", "x")},
                              {kKind}};
constexpr Signature kArg{
    "row_arg", {kT, kI}, {input("x", 'T', "... C"), output("index", 'I', "...")}, {flag("least")}};

bool is_extreme(int kind) {
  return kind == static_cast<int>(RowReduction::max) || kind == static_cast<int>(RowReduction::min);
}
Status no_extreme(const char* function, const ConstView& x) {
  return Status::error("%s: x is %s: an empty row has no largest and no smallest element", function,
                       describe(x).text);
}

Status launch(const Queue& queue, const Op& op, const Call& c) {
  const ConstView &x = c.view(0), &y = c.view(1);
  const RowReduceProblem p{rows_of(x, detail::over_columns(y, x)), x.data, c.output(1), x.dtype,
                           static_cast<int>(c.whole(0))};
  const bool arg = &op.signature == &kArg;
  if ((arg || is_extreme(p.kind)) && p.rows.columns == 0 && p.rows.rows > 0)
    return no_extreme(op.function, x);
  if (arg && p.rows.columns > INT32_MAX)
    return Status::error("row_arg: x is %s, its rows must be shorter than 2^31", describe(x).text);
  return dispatch(queue, op, &p, c.variant);
}
Status launch_backward(const Queue& queue, const Op& op, const Call& c) {
  const ConstView& x = c.view(0);
  const RowReduceBackwardProblem p{
      rows_of(c.view(3), x, detail::over_columns(c.view(1), x), detail::over_columns(c.view(2), x)),
      c.output(3),
      x.data,
      c.view(1).data,
      c.view(2).data,
      x.dtype,
      static_cast<int>(c.whole(0))};
  if (is_extreme(p.kind))
    return Status::error("row_reduce_backward: kind is %s, must be sum, mean, logsumexp or product",
                         p.kind == static_cast<int>(RowReduction::max) ? "max" : "min");
  return dispatch(queue, op, &p, c.variant);
}

Status takes_all(const void*) { return {}; }
constexpr Variant kVariants[] = {
    {"tile", "a row's segments one after the other, each reduced by lanes", Role::standard, takes_all}};

}  // namespace

extern const Op row_reduce_op{"row_reduce", "forward", "row_reduce", kVariants, kReduce, launch};
extern const Op row_reduce_backward_op{"row_reduce", "backward", "row_reduce_backward",
                                       kVariants,    kBackward,  launch_backward};
extern const Op row_arg_op{"row_arg", "forward", "row_arg", kVariants, kArg, launch};
extern const Op* const row_reduce_ops[] = {&row_reduce_op, &row_reduce_backward_op, &row_arg_op, nullptr};

Status row_reduce(const Queue& queue, ConstView x, View y, const RowReduceOptions& options) {
  return call(queue, row_reduce_op, {&x, &y}, {static_cast<double>(options.kind)}, options.variant);
}
Status row_reduce_backward(const Queue& queue, const RowReduceBackwardInputs& in, View dx,
                           const RowReduceOptions& options) {
  return call(queue, row_reduce_backward_op, {&in.x, &in.y, &in.dy, &dx}, {static_cast<double>(options.kind)},
              options.variant);
}
Status row_arg(const Queue& queue, ConstView x, View index, const RowArgOptions& options) {
  return call(queue, row_arg_op, {&x, &index}, {double(options.least)}, options.variant);
}

}  // namespace rooftile
