#include "rooftile/ops/layer_norm/layer_norm.h"

#include "rooftile/core/signature.h"
#include "rooftile/ops/layer_norm/ladder/ladder.h"
#include "rooftile/ops/layer_norm/layer_norm.problem.h"

namespace rooftile {
namespace {

constexpr Signature::Types kT =  // the data's
    Signature::Types{'T', {DType::f32, DType::f16, DType::bf16}}.with_on_cpus(DType::f64);
constexpr Signature::Types kW{'W', {DType::f32}, 'T'};                               // weights'
constexpr Signature::Types kG{'G', {DType::f32}, 'W'};                               // their gradients'
constexpr Signature::Types kF = Signature::Types{'F', {DType::f32}}.wide_with('T');  // statistics'

constexpr Signature kForward{
    "layer_norm",
    {kT, kW, kF},
    {input("x", 'T', "... C"), optional(input("residual", 'T', "... C")), optional(input("weight", 'W', "C")),
     optional(input("bias", 'W', "C")), output("y", 'T', "... C", "x residual"),
     sum_of("x residual", optional(output("sum", 'T', "... C", "x residual"))),
     optional(output("mean", 'F', "...")), optional(output("rstd", 'F', "..."))},
    {real("eps", 1e-5, 0)}};

constexpr Signature kBackward{
    "layer_norm_backward",
    {kT, kW, kF, kG},
    {input("x", 'T', "... C"), input("dy", 'T', "... C"), optional(input("weight", 'W', "C")),
     input("mean", 'F', "..."), input("rstd", 'F', "..."), output("dx", 'T', "... C", "x dy"),
     optional(output("dweight", 'G', "C")), optional(output("dbias", 'G', "C"))}};

template <class Problem>
Status any_problem(const Problem&) {
  return {};
}
Status plain_f32(const LayerNormProblem& p) {
  using P = LayerNormProblem;
  if (p.dtype != DType::f32)
    return Status::error("layer_norm: the ladder's rungs take f32, x is %s", name(p.dtype));
  if (!p.vectors[P::kWeight].data || !p.vectors[P::kBias].data)
    return Status::error("layer_norm: the ladder's rungs take a weight and a bias, %s is absent",
                         p.vectors[P::kWeight].data ? "bias" : "weight");
  if (p.data[P::kResidual] || p.data[P::kSum])
    return Status::error("layer_norm: the ladder's rungs take neither residual nor sum");
  if (!p.rows.dense() ||
      (p.rows.columns > 1 && (p.vectors[P::kWeight].stride != 1 || p.vectors[P::kBias].stride != 1)))
    return Status::error(
        "layer_norm: the ladder's rungs take dense rows, these have element strides %lld (x), %lld (y), %lld "
        "(weight) "
        "and %lld (bias)",
        static_cast<long long>(p.rows.column_stride[P::kX]),
        static_cast<long long>(p.rows.column_stride[P::kY]),
        static_cast<long long>(p.vectors[P::kWeight].stride),
        static_cast<long long>(p.vectors[P::kBias].stride));
  return {};
}
/// A grid has 2^31 - 1 blocks at most.
Status gpu_f32(const LayerNormProblem& p) {
  constexpr std::int64_t kMaxRows = (std::int64_t{1} << 31) - 1;
  if (Status s = plain_f32(p); !s || p.rows.rows <= kMaxRows) return s;
  return Status::error("layer_norm: the GPU's rungs take up to %lld rows, these are %lld",
                       static_cast<long long>(kMaxRows), static_cast<long long>(p.rows.rows));
}
Status gpu_held_f32(const LayerNormProblem& p) {
  if (Status s = gpu_f32(p); !s || p.rows.columns <= ladder::kLongestGpuLayerNormRow) return s;
  return Status::error(
      "layer_norm: the GPU's rungs from 04 on hold rows of up to %lld elements, these have %lld",
      static_cast<long long>(ladder::kLongestGpuLayerNormRow), static_cast<long long>(p.rows.columns));
}

constexpr Variant kForwardVariants[] = {
    {"tile", "every dtype and stride: the block language's kernel", Role::standard,
     accepts<any_problem<LayerNormProblem>>},
    {"05_overlap", "the next row is read while one is written", Role::rung, accepts<plain_f32>},
    {"04_one_pass", "mean and variance from one pass, about a shift", Role::rung, accepts<plain_f32>},
    {"03_accumulators", "four vectors at a time, the tail by a mask", Role::rung, accepts<plain_f32>},
    {"02_vectors", "each of the three loops on whole vectors", Role::rung, accepts<plain_f32>},
    {"01_scalar", "three loops over a row, as the equations read", Role::rung, accepts<plain_f32>},
    {"06_teams", "several short rows to a warp", Role::gpu_rung, accepts<gpu_held_f32>},
    {"05_words", "16 bytes to a load and a store", Role::gpu_rung, accepts<gpu_held_f32>},
    {"04_registers", "the row in a block's registers, read once", Role::gpu_rung, accepts<gpu_held_f32>},
    {"03_shuffles", "a warp's threads add up by shuffles", Role::gpu_rung, accepts<gpu_f32>},
    {"02_block", "a block a row; neighbours read neighbours", Role::gpu_rung, accepts<gpu_f32>},
    {"01_naive", "a thread a row, three loops", Role::gpu_rung, accepts<gpu_f32>},
};

/// The call's views, in the signature's order.
struct BackwardViews {
  const ConstView* all[8];
  BackwardViews(const LayerNormBackwardInputs& in, const LayerNormBackwardOutputs& out)
      : all{&in.x, &in.dy, &in.weight, &in.mean, &in.rstd, &out.dx, &out.dweight, &out.dbias} {}
};

}  // namespace

extern const Op layer_norm_op = row_op<kForward, LayerNormProblem>("layer_norm", "forward", kForwardVariants);
extern const Op layer_norm_backward_op =
    row_op<kBackward, LayerNormBackwardProblem>("layer_norm", "backward");
extern const Op* const layer_norm_ops[] = {&layer_norm_op, &layer_norm_backward_op, nullptr};

Status layer_norm(const Queue& queue, const LayerNormInputs& in, const LayerNormOutputs& out,
                  const LayerNormOptions& options) {
  return call(queue, layer_norm_op,
              {&in.x, &in.residual, &in.weight, &in.bias, &out.y, &out.sum, &out.mean, &out.rstd},
              {options.eps}, options.variant);
}

Status layer_norm_backward_workspace(const Queue& queue, const LayerNormBackwardInputs& in,
                                     const LayerNormBackwardOutputs& out, std::size_t& bytes) {
  return workspace_of(queue, layer_norm_backward_op, {BackwardViews(in, out).all, nullptr}, bytes);
}

Status layer_norm_backward(const Queue& queue, const LayerNormBackwardInputs& in,
                           const LayerNormBackwardOutputs& out, const LayerNormOptions& options,
                           Workspace workspace) {
  return call(queue, layer_norm_backward_op,
              {BackwardViews(in, out).all, nullptr, options.variant, workspace});
}

}  // namespace rooftile
