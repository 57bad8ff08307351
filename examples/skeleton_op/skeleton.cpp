#include "rooftile/ops/skeleton/skeleton.h"

#include "rooftile/core/signature.h"
#include "rooftile/ops/skeleton/skeleton.problem.h"

namespace rooftile {
namespace {

// x and y have one dtype, T, and one shape: any outer sizes, then C columns. y may be x.
constexpr Signature kSignature{"skeleton",
                               {{'T', {DType::f32, DType::f16, DType::bf16}}},
                               {input("x", 'T', "... C"), output("y", 'T', "... C", "x")}};

Status any_row(const SkeletonProblem&) { return {}; }
Status dense_f32(const SkeletonProblem& p) {
  if (p.dtype != DType::f32)
    return Status::error("skeleton: the ladder's rung takes f32, x is %s", name(p.dtype));
  if (!p.rows.dense())
    return Status::error("skeleton: the ladder's rung takes dense rows, these are strided");
  return {};
}

// Fastest first; the rungs of the ladder are taken only by name.
constexpr Variant kVariants[] = {
    {"tile", "every dtype and stride: the block language's kernel", Role::standard, accepts<any_row>},
    {"01_scalar", "two loops over a row, as the equation reads", Role::rung, accepts<dense_f32>},
};

// Of a call that the signature accepted.
Status launch(const Queue& queue, const Op& op, const Call& c) {
  const ConstView &x = c.view(0), &y = c.view(1);
  const SkeletonProblem problem{rows_of(x, y), x.data, c.output(1), x.dtype};
  return dispatch(queue, op, &problem, c.variant);
}

}  // namespace

extern const Op skeleton_op{"skeleton", "forward", "skeleton", kVariants, kSignature, launch};
extern const Op* const skeleton_ops[] = {&skeleton_op, nullptr};

Status skeleton(const Queue& queue, ConstView x, View y, const SkeletonOptions& options) {
  return call(queue, skeleton_op, {&x, &y}, {}, options.variant);
}

}  // namespace rooftile
