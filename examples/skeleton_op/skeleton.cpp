#include "rooftile/ops/skeleton/skeleton.h"

#include "rooftile/ops/skeleton/skeleton.problem.h"

namespace rooftile {
namespace {

constexpr Signature::Types kT{'T', {DType::f32, DType::f16, DType::bf16}};  // the data's
constexpr Signature::Types kW{'W', {DType::f32}, 'T'};                      // the weight's: f32, or as T
constexpr Signature::Types kG{'G', {DType::f32}, 'W'};                      // its gradient's
constexpr Signature::Types kF{'F', {DType::f32}};                           // the mean's

constexpr Signature kForward{"skeleton",
                             {kT, kW, kF},
                             {input("x", 'T', "... C"), optional(input("weight", 'W', "C")),
                              output("y", 'T', "... C", "x"), optional(output("mean", 'F', "..."))}};
constexpr Signature kBackward{
    "skeleton_backward",
    {kT, kW, kF, kG},
    {input("x", 'T', "... C"), input("dy", 'T', "... C"), optional(input("weight", 'W', "C")),
     input("mean", 'F', "..."), output("dx", 'T', "... C", "x dy"), optional(output("dweight", 'G', "C"))}};

}  // namespace

extern const Op skeleton_op = row_op<kForward, SkeletonProblem>("skeleton", "forward");
extern const Op skeleton_backward_op = row_op<kBackward, SkeletonBackwardProblem>("skeleton", "backward");
extern const Op* const skeleton_ops[] = {&skeleton_op, &skeleton_backward_op, nullptr};

Status skeleton(const Queue& queue, ConstView x, ConstView weight, View y, View mean,
                const SkeletonOptions& options) {
  return call(queue, skeleton_op, {&x, &weight, &y, &mean}, {}, options.variant);
}
Status skeleton_backward(const Queue& queue, ConstView x, ConstView dy, ConstView weight, ConstView mean,
                         View dx, View dweight, const SkeletonOptions& options, Workspace workspace) {
  return call(queue, skeleton_backward_op, {&x, &dy, &weight, &mean, &dx, &dweight}, {}, options.variant,
              workspace);
}
Status skeleton_backward_workspace(const Queue& queue, ConstView x, ConstView dy, ConstView weight,
                                   ConstView mean, View dx, View dweight, std::size_t& bytes) {
  const ConstView* const views[] = {&x, &dy, &weight, &mean, &dx, &dweight};
  return workspace_of(queue, skeleton_backward_op, Call{views, nullptr}, bytes);
}

}  // namespace rooftile
