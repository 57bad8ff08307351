#include "rooftile/ops/blas2/blas2.h"

#include <cmath>

#include "rooftile/core/signature.h"
#include "rooftile/ops/blas2/blas2.problem.h"

namespace rooftile {
namespace {

constexpr Signature::Types kT{'T', {DType::f64, DType::f32, DType::f16, DType::bf16}};
constexpr Signature::Option kAlpha = any_real("alpha", 1), kBeta = any_real("beta", 0);

constexpr Signature kGemv{"gemv",
                          {kT},
                          {input("a", 'T', "M N"), input("x", 'T', "N"), optional(input("c", 'T', "M")),
                           output("y", 'T', "M", "c")},
                          {kAlpha, kBeta}};
constexpr Signature kGemvBackward{
    "gemv_backward",
    {kT},
    {input("a", 'T', "M N"), input("x", 'T', "N"), input("dy", 'T', "M"), optional(output("da", 'T', "M N")),
     output("dx", 'T', "N"), optional(output("dc", 'T', "M"))},
    {kAlpha, kBeta}};
constexpr Signature kGeru{"geru",
                          {kT},
                          {input("x", 'T', "M"), input("y", 'T', "N"), optional(input("c", 'T', "M N")),
                           output("a", 'T', "M N", "c")},
                          {kAlpha}};
constexpr Signature kGeruBackward{
    "geru_backward",
    {kT},
    {input("x", 'T', "M"), input("y", 'T', "N"), input("da", 'T', "M N"), output("dx", 'T', "M"),
     optional(output("dy", 'T', "N")), optional(output("dc", 'T', "M N"))},
    {kAlpha}};

/// Whether a beta is 0 as f32 holds it, or f64 (whatever the caller's rounding mode; by operators, a NaN
/// would trap where the caller wants that).
bool is_zero(DType type, double beta) {
  return beta == 0 || (type != DType::f64 && __builtin_islessequal(std::fabs(beta), 0x1p-150));
}

/// y = alpha·A·x + beta·c; a c that is not read may be absent. `turned`: of A's transpose.
GemvProblem product(const ConstView& a, bool turned, const ConstView& x, const ConstView& c,
                    const ConstView& y, double alpha, double beta) {
  GemvProblem p{};
  const int row = turned ? 1 : 0, column = 1 - row;
  p.dtype = y.dtype;
  p.y = const_cast<void*>(y.data);
  p.y_stride = y.stride[0];
  p.a = a.data, p.a_row = a.stride[row], p.a_column = a.stride[column];
  p.m = a.shape[row], p.n = a.shape[column];
  p.x = x.data, p.x_stride = x.stride[0];
  p.alpha = alpha;
  if (!is_zero(p.dtype, beta)) p.beta = beta, p.c = c.data, p.c_stride = c.stride[0];
  return p;
}
/// a = alpha·x·yᵀ + c; an absent c is not added.
GeruProblem outer(const ConstView& x, const ConstView& y, const ConstView& c, const ConstView& a,
                  double alpha) {
  GeruProblem p{};
  p.dtype = a.dtype;
  p.a = const_cast<void*>(a.data);
  p.a_row = a.stride[0], p.a_column = a.stride[1];
  p.m = a.shape[0], p.n = a.shape[1];
  p.x = x.data, p.x_stride = x.stride[0];
  p.y = y.data, p.y_stride = y.stride[0];
  if (c.present()) p.c = c.data, p.c_row = c.stride[0], p.c_column = c.stride[1];
  p.alpha = alpha;
  return p;
}

Status launch_gemv(const Queue& queue, const Op& op, const Call& call) {
  const ConstView &a = call.view(0), &x = call.view(1), &c = call.view(2), &y = call.view(3);
  const GemvProblem p = product(a, false, x, c, y, call.options[0], call.options[1]);
  if (p.beta != 0 && !c.present())
    return Status::error("gemv: beta is %g, but c is absent; give a c, or a beta of 0", p.beta);
  return dispatch(queue, op, &p, call.variant);
}
Status launch_geru(const Queue& queue, const Op& op, const Call& call) {
  const GeruProblem p = outer(call.view(0), call.view(1), call.view(2), call.view(3), call.options[0]);
  return dispatch(queue, op, &p, call.variant);
}

Status launch_gemv_backward(const Queue& queue, const Op& op, const Call& call) {
  const ConstView &a = call.view(0), &x = call.view(1), &dy = call.view(2), &da = call.view(3),
                  &dx = call.view(4), &dc = call.view(5);
  const double alpha = call.options[0], beta = call.options[1];
  Blas2Gradients g{};
  if (da.present()) g.outer = outer(dy, x, ConstView{}, da, alpha);
  g.products[0] = product(a, true, dy, ConstView{}, dx, alpha, 0);
  if (dc.present()) {  // as a product of no columns; beta = 0 reads no dy and gives 0
    GemvProblem& p = g.products[1] = product(a, false, x, dy, dc, 0, beta);
    p.n = 0;
  }
  return dispatch(queue, op, &g, call.variant);
}
Status launch_geru_backward(const Queue& queue, const Op& op, const Call& call) {
  const ConstView &x = call.view(0), &y = call.view(1), &da = call.view(2), &dx = call.view(3),
                  &dy = call.view(4), &dc = call.view(5);
  const double alpha = call.options[0];
  Blas2Gradients g{};
  g.products[0] = product(da, false, y, ConstView{}, dx, alpha, 0);
  if (dy.present()) g.products[1] = product(da, true, x, ConstView{}, dy, alpha, 0);
  if (dc.present()) {
    g.outer = outer(x, y, da, dc, alpha);
    g.outer.x = g.outer.y = nullptr;  // dc = da
  }
  return dispatch(queue, op, &g, call.variant);
}

Status any(const void*) { return {}; }
constexpr Variant kGemvVariants[] = {
    {"tile", "rows in one pass, or columns added up in blocks of rows; chunks at fixed columns",
     Role::standard, any}};
constexpr Variant kGeruVariants[] = {
    {"tile", "a row at a time, or a column where those are contiguous", Role::standard, any}};
constexpr Variant kBackwardVariants[] = {
    {"tile", "gemv and geru on views, each where it is wanted", Role::standard, any}};

}  // namespace

extern const Op gemv_op{"gemv", "forward", "gemv", kGemvVariants, kGemv, launch_gemv};
extern const Op gemv_backward_op{"gemv",        "backward",          "gemv_backward", kBackwardVariants,
                                 kGemvBackward, launch_gemv_backward};
extern const Op geru_op{"geru", "forward", "geru", kGeruVariants, kGeru, launch_geru};
extern const Op geru_backward_op{"geru",        "backward",          "geru_backward", kBackwardVariants,
                                 kGeruBackward, launch_geru_backward};
extern const Op* const blas2_ops[] = {&gemv_op, &gemv_backward_op, &geru_op, &geru_backward_op, nullptr};

Status gemv(const Queue& queue, const GemvInputs& in, View y, const GemvOptions& options) {
  return call(queue, gemv_op, {&in.a, &in.x, &in.c, &y}, {options.alpha, options.beta}, options.variant);
}
Status gemv_backward(const Queue& queue, const GemvBackwardInputs& in, const GemvGradients& out,
                     const GemvOptions& options) {
  return call(queue, gemv_backward_op, {&in.a, &in.x, &in.dy, &out.da, &out.dx, &out.dc},
              {options.alpha, options.beta}, options.variant);
}
Status geru(const Queue& queue, const GeruInputs& in, View a, const GeruOptions& options) {
  return call(queue, geru_op, {&in.x, &in.y, &in.c, &a}, {options.alpha}, options.variant);
}
Status geru_backward(const Queue& queue, const GeruBackwardInputs& in, const GeruGradients& out,
                     const GeruOptions& options) {
  return call(queue, geru_backward_op, {&in.x, &in.y, &in.da, &out.dx, &out.dy, &out.dc}, {options.alpha},
              options.variant);
}

}  // namespace rooftile
