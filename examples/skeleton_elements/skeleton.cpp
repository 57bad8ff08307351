#include "rooftile/ops/skeleton/skeleton.h"

#include "rooftile/core/elements.h"

namespace rooftile {

// What the function takes: validation, the harness's operands and calls by name follow from it.
constexpr Signature kSkeleton{"skeleton",
                              {{'T', {DType::f32, DType::f16, DType::bf16}}},
                              {input("x", 'T', "..."), output("y", 'T', "...", "x")}};

extern const Op skeleton_op = elements_op<kSkeleton>("skeleton", "forward");
extern const Op* const skeleton_ops[] = {&skeleton_op, nullptr};

Status skeleton(const Queue& queue, ConstView x, View y, const SkeletonOptions& options) {
  return call(queue, skeleton_op, {&x, &y}, {}, options.variant);
}

}  // namespace rooftile
