#include "rooftile/ops/layer_norm/layer_norm.h"

#include <bit>

#include "rooftile/core/check.h"
#include "rooftile/core/op.h"
#include "rooftile/ops/layer_norm/ladder/ladder.h"
#include "rooftile/ops/layer_norm/layer_norm.problem.h"

namespace rooftile {
namespace {

constexpr const char* kForward = "layer_norm";
constexpr const char* kBackward = "layer_norm_backward";
constexpr auto kFloats = {DType::f32, DType::f16, DType::bf16};

template <class Problem>
Status any_problem(const Problem&) {
  return {};
}
Status plain_f32(const LayerNormProblem& p) {
  using P = LayerNormProblem;
  if (p.dtype != DType::f32)
    return Status::error("layer_norm: the ladder's rungs take f32, x is %s", name(p.dtype));
  if (!p.weight.data || !p.bias.data)
    return Status::error("layer_norm: the ladder's rungs take a weight and a bias, %s is absent",
                         p.weight.data ? "bias" : "weight");
  if (p.data[P::kResidual] || p.data[P::kSum])
    return Status::error("layer_norm: the ladder's rungs take neither residual nor sum");
  if (!p.rows.dense() || (p.rows.columns > 1 && (p.weight.stride != 1 || p.bias.stride != 1)))
    return Status::error(
        "layer_norm: the ladder's rungs take dense rows, these have element strides %lld (x), %lld (y), %lld "
        "(weight) "
        "and %lld (bias)",
        static_cast<long long>(p.rows.column_stride[P::kX]),
        static_cast<long long>(p.rows.column_stride[P::kY]), static_cast<long long>(p.weight.stride),
        static_cast<long long>(p.bias.stride));
  return {};
}
/// A grid has 2^31 - 1 blocks at most.
Status gpu_f32(const LayerNormProblem& p) {
  constexpr std::int64_t kMostRows = (std::int64_t{1} << 31) - 1;
  if (Status s = plain_f32(p); !s || p.rows.rows <= kMostRows) return s;
  return Status::error("layer_norm: the GPU's rungs take up to %lld rows, these are %lld",
                       static_cast<long long>(kMostRows), static_cast<long long>(p.rows.rows));
}
Status gpu_held_f32(const LayerNormProblem& p) {
  if (Status s = gpu_f32(p); !s || p.rows.columns <= ladder::kLongestGpuLayerNormRow) return s;
  return Status::error(
      "layer_norm: the GPU's rungs from 04 on hold rows of up to %lld elements, these have %lld",
      static_cast<long long>(ladder::kLongestGpuLayerNormRow), static_cast<long long>(p.rows.columns));
}

constexpr Variant kForwardVariants[] = {
    {"tile", "all threads; the block language's kernel", Role::standard,
     accepts<any_problem<LayerNormProblem>>},
    {"05_overlap", "the next row is read while one is written", Role::rung, accepts<plain_f32>},
    {"04_one_reading", "mean and variance from one reading, about a shift", Role::rung, accepts<plain_f32>},
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
constexpr Variant kBackwardVariants[] = {
    {"tile", "all threads; weight gradients by column sums of blocks of rows", Role::standard,
     accepts<any_problem<LayerNormBackwardProblem>>},
};

/// x without its last dimension: the shape of its statistics.
ConstView outer_of(ConstView x) {
  --x.rank;
  std::int64_t dense = 1;  // strides for the sentences; a product that does not fit was refused
  for (int d = x.rank - 1; d >= 0; --d) {
    x.stride[d] = dense;
    dense *= x.shape[d] > 0 ? x.shape[d] : 1;
  }
  return x;
}
/// One row of x: the shape of its weights.
ConstView row_of_columns(ConstView x) {
  x.shape[0] = x.shape[x.rank - 1];
  x.rank = 1;
  x.stride[0] = 1;  // for the sentences
  return x;
}

/// The statistic as an operand of x's rank, so that its offsets are found with the rows'; any operand where
/// absent.
ConstView over_columns(const ConstView& statistic, const ConstView& x) {
  if (!statistic.present()) return x;
  ConstView v = statistic;
  v.rank = x.rank;
  v.shape[v.rank - 1] = x.shape[x.rank - 1];
  v.stride[v.rank - 1] = 1;  // never walked: each row has one value
  return v;
}
ConstView or_else(const ConstView& view, const ConstView& otherwise) {
  return view.present() ? view : otherwise;
}
const void* data_of(const ConstView& view) { return view.present() ? view.data : nullptr; }
LayerNormColumns columns_of(const ConstView& view) {
  if (!view.present() || view.shape[0] == 0) return {nullptr, 1};
  return {view.data, view.stride[0]};
}

Status check_like_x(const char* function, Argument argument, const ConstView& x) {
  ROOFTILE_TRY(check_view(function, argument, kFloats));
  ROOFTILE_TRY(check_same_shape(function, {"x", x}, argument));
  return check_same_dtype(function, {"x", x}, argument);
}
Status check_statistic(const char* function, Argument argument, const ConstView& x) {
  ROOFTILE_TRY(check_view(function, argument, {DType::f32}));
  return check_same_shape(function, {"x without its last dimension", outer_of(x)}, argument);
}
/// A vector over the columns, of f32 or of `dtype`.
Status check_columns(const char* function, Argument argument, const ConstView& x, DType dtype) {
  ROOFTILE_TRY(check_view(function, argument, {DType::f32, dtype}));
  return check_same_shape(function, {"a row of x", row_of_columns(x)}, argument);
}

struct Output {
  Argument argument;
  bool in_place;  ///< may be one of the inputs of x's shape
};
/// Outputs lie apart from each other and from the inputs; the first `like_x` inputs may be an output in
/// place. Each one's range is found once: for every pair they took a fifth of a call of 1x8.
Status check_apart(const char* function, std::initializer_list<Output> outputs,
                   std::initializer_list<Argument> inputs, std::size_t like_x) {
  struct Placed {
    const Argument* argument;
    Range range;
    bool in_place;
  };
  constexpr std::size_t kMost = 12;
  Placed placed[kMost];
  std::size_t count = 0;
  for (const Argument& input : inputs) {
    placed[count] = {&input, input.view.present() ? range_of(input.view) : Range{}, count < like_x};
    ++count;
  }
  for (const Output& o : outputs) {
    if (!o.argument.view.present()) continue;
    ROOFTILE_TRY(check_output(function, o.argument));
    const Range range = range_of(o.argument.view);
    for (std::size_t i = 0; i < count; ++i)
      if (range.begin < placed[i].range.end && placed[i].range.begin < range.end)
        ROOFTILE_TRY(
            check_no_overlap(function, o.argument, *placed[i].argument, o.in_place && placed[i].in_place));
    placed[count++] = {&o.argument, range, false};
  }
  return {};
}

Status check_backward(const LayerNormBackwardInputs& in, const LayerNormBackwardOutputs& out) {
  ROOFTILE_TRY(check_view(kBackward, {"x", in.x}, kFloats));
  ROOFTILE_TRY(check_rank(kBackward, {"x", in.x}, 1));
  ROOFTILE_TRY(check_like_x(kBackward, {"dy", in.dy}, in.x));
  ROOFTILE_TRY(check_like_x(kBackward, {"dx", out.dx}, in.x));
  ROOFTILE_TRY(check_statistic(kBackward, {"mean", in.mean}, in.x));
  ROOFTILE_TRY(check_statistic(kBackward, {"rstd", in.rstd}, in.x));
  if (in.weight.present()) ROOFTILE_TRY(check_columns(kBackward, {"weight", in.weight}, in.x, in.x.dtype));
  const DType gradient = in.weight.present() ? in.weight.dtype : in.x.dtype;
  if (out.dweight.present()) ROOFTILE_TRY(check_columns(kBackward, {"dweight", out.dweight}, in.x, gradient));
  if (out.dbias.present()) ROOFTILE_TRY(check_columns(kBackward, {"dbias", out.dbias}, in.x, gradient));
  if (out.dweight.present() && out.dbias.present())
    ROOFTILE_TRY(check_same_dtype(kBackward, {"dweight", out.dweight}, {"dbias", out.dbias}));
  return check_apart(
      kBackward, {{{"dx", out.dx}, true}, {{"dweight", out.dweight}, false}, {{"dbias", out.dbias}, false}},
      {{"x", in.x}, {"dy", in.dy}, {"weight", in.weight}, {"mean", in.mean}, {"rstd", in.rstd}}, 2);
}

std::int64_t blocks_of(const Queue& queue, const ConstView& x) {
  std::int64_t rows = 1;
  for (int d = 0; d + 1 < x.rank; ++d) rows *= x.shape[d];
  return queue.device() == Device::cpu
             ? layer_norm_blocks(rows)
             : layer_norm_gpu_blocks(rows, x.shape[x.rank - 1], x.dtype, queue.architecture());
}

std::size_t workspace_of(const Queue& queue, const LayerNormBackwardInputs& in,
                         const LayerNormBackwardOutputs& out) {
  const std::int64_t columns = in.x.shape[in.x.rank - 1];
  const std::int64_t sums = (out.dweight.present() ? 1 : 0) + (out.dbias.present() ? 1 : 0);
  if (columns == 0) return 0;
  return static_cast<std::size_t>(blocks_of(queue, in.x) * sums * layer_norm_sums_stride(columns) * 4);
}

}  // namespace

extern const Op layer_norm_op{"layer_norm", "forward", kForward, kForwardVariants};
extern const Op layer_norm_backward_op{"layer_norm", "backward", kBackward, kBackwardVariants};
extern const Op* const layer_norm_ops[] = {&layer_norm_op, &layer_norm_backward_op, nullptr};

Status layer_norm(const Queue& queue, const LayerNormInputs& in, const LayerNormOutputs& out,
                  const LayerNormOptions& options) {
  ROOFTILE_TRY(check_view(kForward, {"x", in.x}, kFloats));
  ROOFTILE_TRY(check_rank(kForward, {"x", in.x}, 1));
  ROOFTILE_TRY(check_like_x(kForward, {"y", out.y}, in.x));
  if (in.residual.present()) ROOFTILE_TRY(check_like_x(kForward, {"residual", in.residual}, in.x));
  if (out.sum.present()) ROOFTILE_TRY(check_like_x(kForward, {"sum", out.sum}, in.x));
  if (in.weight.present()) ROOFTILE_TRY(check_columns(kForward, {"weight", in.weight}, in.x, in.x.dtype));
  if (in.bias.present()) ROOFTILE_TRY(check_columns(kForward, {"bias", in.bias}, in.x, in.x.dtype));
  if (in.weight.present() && in.bias.present())
    ROOFTILE_TRY(check_same_dtype(kForward, {"weight", in.weight}, {"bias", in.bias}));
  if (out.mean.present()) ROOFTILE_TRY(check_statistic(kForward, {"mean", out.mean}, in.x));
  if (out.rstd.present()) ROOFTILE_TRY(check_statistic(kForward, {"rstd", out.rstd}, in.x));
  ROOFTILE_TRY(check_apart(kForward,
                           {{{"y", out.y}, true},
                            {{"sum", out.sum}, true},
                            {{"mean", out.mean}, false},
                            {{"rstd", out.rstd}, false}},
                           {{"x", in.x}, {"residual", in.residual}, {"weight", in.weight}, {"bias", in.bias}},
                           2));
  // By its bits: comparing a NaN would raise the caller's trap. What is not below infinity's is infinite, NaN
  // or negative.
  constexpr std::uint32_t kInfinity = 0x7f800000, kMinusZero = 0x80000000;
  if (const auto bits = std::bit_cast<std::uint32_t>(options.eps); bits >= kInfinity && bits != kMinusZero)
    return Status::error("%s: eps is %g, must be finite and not negative", kForward,
                         static_cast<double>(options.eps));

  const DType weight_dtype = in.weight.present() ? in.weight.dtype
                             : in.bias.present() ? in.bias.dtype
                                                 : DType::f32;
  const LayerNormProblem problem{
      rows_of(in.x, or_else(in.residual, in.x), out.y, or_else(out.sum, out.y), over_columns(out.mean, out.y),
              over_columns(out.rstd, out.y)),
      {in.x.data, data_of(in.residual), out.y.data, data_of(out.sum), data_of(out.mean), data_of(out.rstd)},
      columns_of(in.weight),
      columns_of(in.bias),
      in.x.dtype,
      weight_dtype,
      options.eps};
  return dispatch(queue, layer_norm_op, &problem, options.variant);
}

Status layer_norm_backward_workspace(const Queue& queue, const LayerNormBackwardInputs& in,
                                     const LayerNormBackwardOutputs& out, std::size_t& bytes) {
  ROOFTILE_TRY(queue.status());
  ROOFTILE_TRY(check_backward(in, out));
  bytes = workspace_of(queue, in, out);
  return {};
}

Status layer_norm_backward(const Queue& queue, const LayerNormBackwardInputs& in,
                           const LayerNormBackwardOutputs& out, const LayerNormOptions& options,
                           Workspace workspace) {
  ROOFTILE_TRY(check_backward(in, out));
  ROOFTILE_TRY(check_workspace(kBackward, workspace, workspace_of(queue, in, out),
                               {{"x", in.x},
                                {"dy", in.dy},
                                {"weight", in.weight},
                                {"mean", in.mean},
                                {"rstd", in.rstd},
                                {"dx", out.dx},
                                {"dweight", out.dweight},
                                {"dbias", out.dbias}}));
  const LayerNormBackwardProblem problem{
      rows_of(in.x, in.dy, out.dx, over_columns(in.mean, in.x), over_columns(in.rstd, in.x)),
      {in.x.data, in.dy.data, out.dx.data, in.mean.data, in.rstd.data},
      columns_of(in.weight),
      columns_of(out.dweight),
      columns_of(out.dbias),
      in.x.dtype,
      in.weight.present() ? in.weight.dtype : DType::f32,
      out.dweight.present() ? out.dweight.dtype
      : out.dbias.present() ? out.dbias.dtype
                            : DType::f32,
      blocks_of(queue, in.x),
      static_cast<float*>(workspace.pointer)};
  return dispatch(queue, layer_norm_backward_op, &problem, options.variant);
}

}  // namespace rooftile
