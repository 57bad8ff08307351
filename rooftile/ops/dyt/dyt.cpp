#include "rooftile/ops/dyt/dyt.h"

#include "rooftile/ops/dyt/dyt.problem.h"

namespace rooftile {
namespace {

constexpr Signature::Types kT{'T', {DType::f32, DType::f16, DType::bf16}};  // the data's
constexpr Signature::Types kW{'W', {DType::f32}, 'T'};                      // parameters'
constexpr Signature::Types kG{'G', {DType::f32}, 'W'};                      // their gradients'

constexpr Signature kForward{
    "dyt",
    {kT, kW},
    {input("x", 'T', "... C"), input("alpha", 'W', "1"), optional(input("weight", 'W', "C")),
     optional(input("bias", 'W', "C")), output("y", 'T', "... C", "x")}};
constexpr Signature kBackward{"dyt_backward",
                              {kT, kW, kG},
                              {input("x", 'T', "... C"), input("dy", 'T', "... C"), input("alpha", 'W', "1"),
                               optional(input("weight", 'W', "C")), output("dx", 'T', "... C", "x dy"),
                               optional(output("dalpha", 'G', "1")), optional(output("dweight", 'G', "C")),
                               optional(output("dbias", 'G', "C"))}};

/// A backward's views, in the signature's order.
struct BackwardViews {
  const ConstView* all[8];
  BackwardViews(const DytBackwardInputs& in, const DytBackwardOutputs& out)
      : all{&in.x, &in.dy, &in.alpha, &in.weight, &out.dx, &out.dalpha, &out.dweight, &out.dbias} {}
};

Status any_rows(const DytBackwardProblem&) { return {}; }
Status rung_rows(const DytBackwardProblem& p) {
  const auto contiguous = [](const ColumnVector& v) { return v.data && v.stride == 1; };
  const bool all = contiguous(p.vectors[0]) && contiguous(p.gradients[0]) && contiguous(p.gradients[1]) &&
                   p.scalar_gradients[0];
  if (p.dtype == DType::f32 && p.rows.dense() && all && p.rows.rows < std::int64_t{1} << 31) return {};
  return Status::error(
      "dyt_backward: the ladder's rungs take fewer than 2^31 contiguous rows of f32, a contiguous weight, "
      "and "
      "all gradients, contiguous");
}
Status rung_words(const DytBackwardProblem& p) {
  if (Status s = rung_rows(p); !s) return s;
  std::uint64_t bytes = reinterpret_cast<std::uintptr_t>(p.vectors[0].data) | 4 * p.rows.columns;
  for (int o = 0; o < DytBackwardProblem::kOperands; ++o) {
    bytes |= reinterpret_cast<std::uintptr_t>(p.data[o]);
    for (int d = 0; d < p.rows.rank; ++d) bytes |= 4 * p.rows.stride[o][d];
  }
  if (bytes % 16 == 0) return {};
  return Status::error("dyt_backward: \"03_words\" takes rows, and a weight, that begin and end at 16 bytes");
}
constexpr Variant kBackwardVariants[] = {
    {"tile", "every dtype and stride: the block language's kernel", Role::standard, accepts<any_rows>},
    {"03_words", "16 bytes to a load and a store", Role::gpu_rung, accepts<rung_words>},
    {"02_blocks", "one kernel; blocks of rows leave sums, which are added in order", Role::gpu_rung,
     accepts<rung_rows>},
    {"01_naive", "a kernel for each result", Role::gpu_rung, accepts<rung_rows>},
};

}  // namespace

extern const Op dyt_op = row_op<kForward, DytProblem>("dyt", "forward");
extern const Op dyt_backward_op = row_op<kBackward, DytBackwardProblem>("dyt", "backward", kBackwardVariants);
extern const Op* const dyt_ops[] = {&dyt_op, &dyt_backward_op, nullptr};

Status dyt(const Queue& queue, const DytInputs& in, View y, const DytOptions& options) {
  return call(queue, dyt_op, {&in.x, &in.alpha, &in.weight, &in.bias, &y}, {}, options.variant);
}
Status dyt_backward(const Queue& queue, const DytBackwardInputs& in, const DytBackwardOutputs& out,
                    const DytOptions& options, Workspace workspace) {
  return call(queue, dyt_backward_op, Call{BackwardViews(in, out).all, nullptr, options.variant, workspace});
}
Status dyt_backward_workspace(const Queue& queue, const DytBackwardInputs& in, const DytBackwardOutputs& out,
                              std::size_t& bytes) {
  return workspace_of(queue, dyt_backward_op, Call{BackwardViews(in, out).all, nullptr}, bytes);
}

}  // namespace rooftile
