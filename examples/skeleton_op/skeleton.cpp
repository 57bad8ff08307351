#include "rooftile/ops/skeleton/skeleton.h"

#include "rooftile/core/check.h"
#include "rooftile/core/op.h"
#include "rooftile/ops/skeleton/skeleton.problem.h"

namespace rooftile {
namespace {

constexpr const char* kName = "skeleton";
constexpr auto kTypes = {DType::f32, DType::f16, DType::bf16};

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

}  // namespace

extern const Op skeleton_op{"skeleton", "forward", kName, kVariants};
extern const Op* const skeleton_ops[] = {&skeleton_op, nullptr};

Status skeleton(const Queue& queue, ConstView x, View y, const SkeletonOptions& options) {
  ROOFTILE_TRY(check_view(kName, {"x", x}, kTypes));
  ROOFTILE_TRY(check_view(kName, {"y", y}, kTypes));
  ROOFTILE_TRY(check_same_shape(kName, {"x", x}, {"y", y}));
  ROOFTILE_TRY(check_same_dtype(kName, {"x", x}, {"y", y}));
  ROOFTILE_TRY(check_rank(kName, {"x", x}, 1));
  ROOFTILE_TRY(check_output(kName, {"y", y}));
  ROOFTILE_TRY(check_no_overlap(kName, {"y", y}, {"x", x}, true));
  const SkeletonProblem problem{rows_of(x, y), x.data, y.mutable_data(), x.dtype};
  return dispatch(queue, skeleton_op, &problem, options.variant);
}

}  // namespace rooftile
