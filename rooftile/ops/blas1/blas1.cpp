#include "rooftile/ops/blas1/blas1.h"

#include "rooftile/core/check.h"
#include "rooftile/core/signature.h"
#include "rooftile/ops/blas1/blas1.parts.h"
#include "rooftile/ops/blas1/blas1.problem.h"

namespace rooftile {
namespace {

constexpr Signature::Types kReals{'T', {DType::f64, DType::f32, DType::f16, DType::bf16}};
constexpr Signature::Types kAll{
    'T',
    {DType::f64, DType::f32, DType::tf32, DType::f16, DType::bf16, DType::f8e4m3, DType::f8e5m2, DType::i64,
     DType::i32, DType::i8, DType::u8, DType::boolean, DType::u4}};

constexpr Signature kCopy{"copy", {kAll}, {input("x", 'T', "..."), output("y", 'T', "...", "x")}};
constexpr Signature kAdd{
    "add", {kReals}, {input("x", 'T', "..."), input("y", 'T', "..."), output("z", 'T', "...", "x y")}};
constexpr Signature kAxpby{"axpby",
                           {kReals},
                           {input("x", 'T', "..."), in_out("y", 'T', "...", "x")},
                           {any_real("alpha", 1), any_real("beta", 1)}};
constexpr Signature kSwap{"swap", {kReals}, {in_out("x", 'T', "..."), in_out("y", 'T', "...")}};
constexpr Signature kScal{
    "scal", {kReals}, {input("x", 'T', "..."), output("y", 'T', "...", "x")}, {any_real("alpha", 1)}};

constexpr Signature::Types kResult{'R', {DType::f64, DType::f32}, 'T'};
constexpr Signature kDot{
    "dot", {kReals, kResult}, {input("x", 'T', "..."), input("y", 'T', "..."), output("result", 'R', "1")}};
constexpr Signature kNrm2{"nrm2", {kReals, kResult}, {input("x", 'T', "..."), output("result", 'R', "1")}};
constexpr Signature kAsum{"asum", {kReals, kResult}, {input("x", 'T', "..."), output("result", 'R', "1")}};

template <class Problem>
Status any(const Problem&) {
  return {};
}

/// The rungs: f32, all elements side by side in every operand.
template <int kOperands>
Status plain_f32(const char* function, DType dtype, const Rows<kOperands>& rows) {
  if (dtype != DType::f32)
    return Status::error("%s: the ladder's rungs take f32, x is %s", function, name(dtype));
  if (rows.rank > 0 || !rows.dense())
    return Status::error(
        "%s: the ladder's rungs take elements that lie side by side; these are %lld rows of %lld "
        "with element strides %lld and %lld",
        function, static_cast<long long>(rows.rows), static_cast<long long>(rows.columns),
        static_cast<long long>(rows.column_stride[0]), static_cast<long long>(rows.column_stride[1]));
  return {};
}
Status plain_add(const AddProblem& p) { return plain_f32("add", p.dtype, p.rows); }
Status plain_dot(const DotProblem& p) { return plain_f32("dot", p.dtype, p.rows); }

/// And of those, vectors that begin with a 16-byte word.
template <int kOperands>
Status begins_with_word(const char* function, const Rows<kOperands>& rows,
                        const void* const (&data)[kOperands]) {
  for (const void* at : data)
    if (const auto behind = reinterpret_cast<std::uintptr_t>(at) % 16; behind != 0 && rows.columns > 0)
      return Status::error(
          "%s: this rung takes vectors that begin at a multiple of 16 bytes, one begins %d behind it",
          function, static_cast<int>(behind));
  return {};
}
Status words_add(const AddProblem& p) {
  ROOFTILE_TRY(plain_add(p));
  return begins_with_word("add", p.rows, {p.z, p.x, p.y});
}
Status words_dot(const DotProblem& p) {
  ROOFTILE_TRY(plain_dot(p));
  return begins_with_word("dot", p.rows, p.data);
}

constexpr Variant kCopyVariants[] = {
    {"tile", "32-bit words whatever the dtype; past the caches where the call exceeds them", Role::standard,
     accepts<any<CopyProblem>>},
};
constexpr Variant kAddVariants[] = {
    {"tile", "every dtype and stride: the block language's kernel", Role::standard, accepts<any<AddProblem>>},
    {"03_streaming", "prefetch ahead, stores past the caches", Role::rung, accepts<plain_add>},
    {"02_vectors", "a whole vector a step", Role::rung, accepts<plain_add>},
    {"01_scalar", "one element a step", Role::rung, accepts<plain_add>},
    {"04_in_flight", "eight 16-byte words on their way before the first addition", Role::gpu_rung,
     accepts<words_add>},
    {"03_vector_loads", "16 bytes a load", Role::gpu_rung, accepts<words_add>},
    {"02_grid_stride", "a grid as large as the GPU; threads that go on", Role::gpu_rung, accepts<plain_add>},
    {"01_one_element", "a thread for each element", Role::gpu_rung, accepts<plain_add>},
};
constexpr Variant kDotVariants[] = {
    {"tile", "every dtype and stride, prefetch; bitwise the rung below", Role::standard,
     accepts<any<DotProblem>>},
    {"compensated", "the exercise's solution: each lane keeps what its additions rounded away", Role::named,
     accepts<plain_dot>},
    {"04_chunks", "chunks of 16384, their sums added pairwise in f64", Role::rung, accepts<plain_dot>},
    {"03_accumulators", "four vectors of sums, so that additions need not wait for each other", Role::rung,
     accepts<plain_dot>},
    {"02_vectors", "one vector of sums", Role::rung, accepts<plain_dot>},
    {"01_scalar", "one sum", Role::rung, accepts<plain_dot>},
    {"06_two_passes", "chunks that follow from n alone, their sums added in a tree", Role::gpu_rung,
     accepts<words_dot>},
    {"05_vector_loads", "16 bytes a load, eight loads on their way", Role::gpu_rung, accepts<words_dot>},
    {"04_shuffles", "lanes add by shuffles, a block meets at one barrier", Role::gpu_rung,
     accepts<plain_dot>},
    {"03_shared_memory", "a block's sums meet in shared memory", Role::gpu_rung, accepts<plain_dot>},
    {"02_neighbours", "the lanes of a warp read neighbours", Role::gpu_rung, accepts<plain_dot>},
    {"01_thread_sums", "a thread a sum, a share of the vector for each", Role::gpu_rung, accepts<plain_dot>},
};

Status launch_copy(const Queue& queue, const Op& op, const Call& c) {
  const ConstView &x = c.view(0), &y = c.view(1);
  const CopyProblem problem{elements_of(y, x), x.data, c.output(1), x.dtype, y.dtype};
  return dispatch(queue, op, &problem, c.variant);
}
Status launch_add(const Queue& queue, const Op& op, const Call& c) {
  const ConstView &x = c.view(0), &y = c.view(1), &z = c.view(2);
  const AddProblem problem{elements_of(z, x, y), x.data, y.data, c.output(2), x.dtype};
  return dispatch(queue, op, &problem, c.variant);
}

}  // namespace

extern const Op copy_op{"copy", "forward", "copy", kCopyVariants, kCopy, launch_copy};
extern const Op add_op{"add", "forward", "add", kAddVariants, kAdd, launch_add};
extern const Op swap_op = elements_op<kSwap>("swap", "forward");
extern const Op scal_op = elements_op<kScal>("scal", "forward");
extern const Op axpby_op = elements_op<kAxpby>("axpby", "forward");
extern const Op dot_op = reduction_op<kDot>(kDotVariants);
extern const Op nrm2_op = reduction_op<kNrm2>();
extern const Op asum_op = reduction_op<kAsum>();
extern const Op* const blas1_ops[] = {&copy_op, &swap_op, &scal_op, &add_op, &axpby_op,
                                      &dot_op,  &nrm2_op, &asum_op, nullptr};

Status copy(const Queue& queue, ConstView x, View y, const CopyOptions& options) {
  return call(queue, copy_op, {&x, &y}, {}, options.variant);
}
Status detail::round_to(const Queue& queue, const ConstView& x, const View& y) {
  const CopyProblem problem{elements_of(y, x), x.data, y.mutable_data(), x.dtype, y.dtype};
  return dispatch(queue, copy_op, &problem, nullptr);
}
Status swap(const Queue& queue, View x, View y, const SwapOptions& options) {
  return call(queue, swap_op, {&x, &y}, {}, options.variant);
}
Status scal(const Queue& queue, double alpha, ConstView x, View y, const ScalOptions& options) {
  return call(queue, scal_op, {&x, &y}, {alpha}, options.variant);
}
Status add(const Queue& queue, ConstView x, ConstView y, View z, const AddOptions& options) {
  return call(queue, add_op, {&x, &y, &z}, {}, options.variant);
}
Status axpby(const Queue& queue, double alpha, ConstView x, double beta, View y,
             const AxpbyOptions& options) {
  return call(queue, axpby_op, {&x, &y}, {alpha, beta}, options.variant);
}
Status dot(const Queue& queue, ConstView x, ConstView y, View result, const DotOptions& options) {
  return call(queue, dot_op, {&x, &y, &result}, {}, options.variant);
}
Status nrm2(const Queue& queue, ConstView x, View result, const Nrm2Options& options) {
  return call(queue, nrm2_op, {&x, &result}, {}, options.variant);
}
Status asum(const Queue& queue, ConstView x, View result, const AsumOptions& options) {
  return call(queue, asum_op, {&x, &result}, {}, options.variant);
}

}  // namespace rooftile
