#include "rooftile/ops/softmax/softmax.h"

#include <cmath>

#include "rooftile/core/signature.h"
#include "rooftile/ops/softmax/ladder/ladder.h"
#include "rooftile/ops/softmax/softmax.problem.h"

namespace rooftile {
namespace {

constexpr Signature::Types kT =
    Signature::Types{'T', {DType::f32, DType::f16, DType::bf16}}.with_on_cpus(DType::f64);
constexpr Signature kForward{"softmax",
                             {kT},
                             {input("x", 'T', "... C"), output("y", 'T', "... C", "x")},
                             {any_real("scale", 1), flag("log"), flag("causal"), flag("masked")}};
constexpr Signature kBackward{
    "softmax_backward",
    {kT},
    {input("y", 'T', "... C"), input("dy", 'T', "... C"), output("dx", 'T', "... C", "y dy")},
    {any_real("scale", 1), flag("log"), flag("causal"), flag("masked")}};

/// Rows up to here keep their exponentials in scratch (kScratchBytes of f32); longer ones are read again.
constexpr std::int64_t kLongestHeldRow = 65536;

template <class Problem>
Status any_row(const Problem&) {
  return {};
}
Status held_row(const SoftmaxProblem& p) {
  if (p.masked) return Status::error("softmax: \"tile\" takes no causal or masked rows, \"online\" does");
  if (p.dtype == DType::f64) return Status::error("softmax: \"tile\" takes no rows of f64, \"online\" does");
  if (p.rows.columns <= kLongestHeldRow) return {};
  return Status::error("softmax: \"tile\" holds rows of up to %lld elements, these have %lld",
                       static_cast<long long>(kLongestHeldRow), static_cast<long long>(p.rows.columns));
}
Status plain_f32(const SoftmaxProblem& p) {
  if (p.dtype != DType::f32)
    return Status::error("softmax: the ladder's rungs take f32, x is %s", name(p.dtype));
  if (!p.rows.dense())
    return Status::error(
        "softmax: the ladder's rungs take dense rows, these have element strides %lld and %lld",
        static_cast<long long>(p.rows.column_stride[0]), static_cast<long long>(p.rows.column_stride[1]));
  if (p.log) return Status::error("softmax: the ladder's rungs compute softmax, not log-softmax");
  if (p.masked) return Status::error("softmax: the ladder's rungs take no causal or masked rows");
  return {};
}
Status plain_held_f32(const SoftmaxProblem& p) {
  if (Status s = plain_f32(p); !s) return s;
  return held_row(p);
}
/// A grid has 2^31 - 1 blocks at most.
Status gpu_f32(const SoftmaxProblem& p) {
  constexpr std::int64_t kMaxRows = (std::int64_t{1} << 31) - 1;
  if (Status s = plain_f32(p); !s || p.rows.rows <= kMaxRows) return s;
  return Status::error("softmax: the GPU's rungs take up to %lld rows, these are %lld",
                       static_cast<long long>(kMaxRows), static_cast<long long>(p.rows.rows));
}
Status gpu_held_f32(const SoftmaxProblem& p) {
  if (Status s = gpu_f32(p); !s || p.rows.columns <= ladder::kLongestGpuSoftmaxRow) return s;
  return Status::error(
      "softmax: the GPU's rungs from 04 on hold rows of up to %lld elements, these have %lld",
      static_cast<long long>(ladder::kLongestGpuSoftmaxRow), static_cast<long long>(p.rows.columns));
}

/// A scale whose product with log2 e is a float.
Status gpu_exp2_f32(const SoftmaxProblem& p) {
  constexpr float kMax = 0x1.62e42cp127f;
  if (Status s = gpu_held_f32(p); !s || !(std::fabs(p.scale) > kMax)) return s;
  return Status::error("softmax: this rung takes scales up to %g, this is %g", double(kMax), p.scale);
}

constexpr Variant kForwardVariants[] = {
    {"tile", "every stride and scale: the block language's kernel", Role::standard, accepts<held_row>},
    {"online", "rows of any length and dtype, read twice, nothing held", Role::standard,
     accepts<any_row<SoftmaxProblem>>},
    {"05_streaming", "the next row prefetched, stores past the caches", Role::rung, accepts<plain_held_f32>},
    {"04_accumulators", "four vectors at a time, the tail by a mask", Role::rung, accepts<plain_held_f32>},
    {"03_fast_exp", "exp as a polynomial on whole vectors", Role::rung, accepts<plain_held_f32>},
    {"02_vectors", "maximum, sum and scaling on vectors; exp still one by one", Role::rung,
     accepts<plain_f32>},
    {"01_scalar", "three loops over a row, as the equation reads", Role::rung, accepts<plain_f32>},
    {"07_exp2", "the exponential as a power of 2, by the special function unit", Role::gpu_rung,
     accepts<gpu_exp2_f32>},
    {"06_teams", "several short rows to a warp", Role::gpu_rung, accepts<gpu_held_f32>},
    {"05_words", "16 bytes to a load and a store", Role::gpu_rung, accepts<gpu_held_f32>},
    {"04_registers", "the row in a block's registers, read once", Role::gpu_rung, accepts<gpu_held_f32>},
    {"03_shuffles", "a warp's threads add up by shuffles", Role::gpu_rung, accepts<gpu_f32>},
    {"02_block", "a block a row; neighbours read neighbours", Role::gpu_rung, accepts<gpu_f32>},
    {"01_naive", "a thread a row, three loops", Role::gpu_rung, accepts<gpu_f32>},
};
Status launch(const Queue& queue, const Op& op, const Call& c) {
  const ConstView &x = c.view(0), &y = c.view(1);
  const bool causal = c.flag(2);
  if (causal && x.rank < 2)
    return Status::error("softmax: x has rank 1; with causal it has queries and keys, rank 2 at least");
  SoftmaxProblem problem{rows_of(x, y), x.data, c.output(1), x.dtype, c.options[0], c.flag(1)};
  problem.masked = causal || c.flag(3);
  problem.queries = causal ? x.shape[x.rank - 2] : 0;
  return dispatch(queue, op, &problem, c.variant);
}
}  // namespace

extern const Op softmax_op{"softmax", "forward", kForward.function, kForwardVariants, kForward, launch};
extern const Op softmax_backward_op = row_op<kBackward, SoftmaxBackwardProblem>("softmax", "backward");
extern const Op* const softmax_ops[] = {&softmax_op, &softmax_backward_op, nullptr};

Status softmax(const Queue& queue, ConstView x, View y, const SoftmaxOptions& o) {
  return call(queue, softmax_op, {&x, &y}, {o.scale, double(o.log), double(o.causal), double(o.masked)},
              o.variant);
}

Status softmax_backward(const Queue& queue, ConstView y, ConstView dy, View dx, const SoftmaxOptions& o) {
  return call(queue, softmax_backward_op, {&y, &dy, &dx},
              {o.scale, double(o.log), double(o.causal), double(o.masked)}, o.variant);
}

}  // namespace rooftile
