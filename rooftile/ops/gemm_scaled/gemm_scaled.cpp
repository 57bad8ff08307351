#include "rooftile/ops/gemm_scaled/gemm_scaled.h"

#include <algorithm>

#include "rooftile/core/check.h"
#include "rooftile/core/signature.h"
#include "rooftile/core/workspace_parts.h"
#include "rooftile/ops/gemm/gemm.operand.h"
#include "rooftile/ops/gemm_scaled/gemm_scaled.problem.h"

namespace rooftile {
namespace {

constexpr Signature kSignature{
    "gemm_scaled",
    {{'T', {DType::f32, DType::f16, DType::bf16}},
     {'P', {DType::f8e4m3, DType::f8e5m2, DType::i8}},
     {'Q', {DType::f8e4m3, DType::f8e5m2, DType::i8}},
     {'F', {DType::f32}},
     {'B', {DType::f32}, 'T'}},
    {input("a", 'P', "... M K"), input("b", 'Q', "... K N"), input("scale_a", 'F', "... M S"),
     input("scale_b", 'F', "... S C"), optional(input("bias", 'B', "N")), output("y", 'T', "... M N")},
    {whole("block", 128, 1), whole("block_n", 1, 1)},
    "S = (K + block - 1)/block; C = (N + block_n - 1)/block_n"};

Status any(const void*) { return {}; }
/// Their stages, none of two blocks, are counted in 32 bits.
Status few_stages(const GemmScaledProblem& p) {
  if (p.product.k / 16 + p.blocks() < std::int64_t{0x7fffffff}) return {};
  return Status::error(
      "gemm_scaled: GPUs take K up to 2^31 blocks and pieces of 16, K is %lld in blocks of %lld",
      static_cast<long long>(p.product.k), static_cast<long long>(p.block));
}
/// What one fragment has rows for, and whole 16-byte vectors along K.
Status few_rows(const GemmScaledProblem& p) {
  ROOFTILE_TRY(few_stages(p));
  const GemmProblem& product = p.product;
  if (product.m > GemmScaledProblem::kFewRows)
    return Status::error("gemm_scaled: few_rows takes up to %d rows of a, M is %lld; mma takes all",
                         GemmScaledProblem::kFewRows, static_cast<long long>(product.m));
  const gemm_gpu::GpuOperand a = gemm_gpu::a_of(product, 1), b = gemm_gpu::b_of(product, 1);
  if (a.k_first && b.k_first && a.piece == 16 && b.piece == 16 && (p.blocks() <= 1 || p.block % 16 == 0))
    return {};
  return Status::error(
      "gemm_scaled: few_rows takes a and b contiguous along K, their other strides and addresses multiples "
      "of 16, and blocks in multiples of 16 elements; strides are %lld and %lld, %lld and %lld, the block is "
      "%lld; mma takes all",
      static_cast<long long>(product.a_row), static_cast<long long>(product.a_column),
      static_cast<long long>(product.b_row), static_cast<long long>(product.b_column),
      static_cast<long long>(p.block));
}
/// What Hopper's copy engine brings, in slices of 128 of K that are blocks, or of one block.
Status boxes(const GemmScaledProblem& p) {
  const GemmProblem& product = p.product;
  const gemm_gpu::GpuOperand a = gemm_gpu::a_of(product, 1), b = gemm_gpu::b_of(product, 1);
  const bool blocks = p.blocks() <= 1 || p.block == GemmScaledProblem::kHopperBlock;
  if (blocks && a.k_first && b.k_first && gemm_gpu::is_mapped(product) &&
      gemm_gpu::is_boxed(product, 1, a, product.m, 1) && gemm_gpu::is_boxed(product, 2, b, product.n, 1))
    return {};
  return Status::error(
      "gemm_scaled: wgmma takes a and b contiguous along K, their other strides and addresses multiples of "
      "16, K from 1, a batch of two dimensions, and blocks of %d or one; strides are %lld and %lld, %lld and "
      "%lld, K is %lld, the block is %lld; mma takes all",
      GemmScaledProblem::kHopperBlock, static_cast<long long>(product.a_row),
      static_cast<long long>(product.a_column), static_cast<long long>(product.b_row),
      static_cast<long long>(product.b_column), static_cast<long long>(product.k),
      static_cast<long long>(p.block));
}
/// Bytes of both operands as halves, where such a call may take them.
std::size_t halves_bytes(const Queue& queue, const Call& c) {
  const ConstView &a = c.view(0), &y = c.view(5);
  const std::int64_t m = y.shape[y.rank - 2], n = y.shape[y.rank - 1], k = a.shape[a.rank - 1];
  std::int64_t matrices = 1;
  for (int d = 0; d + 2 < y.rank; ++d) matrices *= y.shape[d];
  if (queue.device() == Device::cpu || queue.architecture() != 90 || a.dtype == DType::i8 || matrices != 1 ||
      m <= GemmScaledProblem::kFewRows)
    return 0;
  WorkspaceParts parts(nullptr);
  parts.take(m + n, GemmScaledProblem::halves_pitch(k), 2);
  return parts.bytes();
}
/// i8 as it is, and f8 as halves.
Status wgmma(const GemmScaledProblem& p) {
  if (p.integers()) return boxes(p);
  const std::int64_t k = p.product.k;
  if (p.halves && k >= 1 && gemm_gpu::is_mapped(p.product) &&
      (p.blocks() <= 1 || p.block == GemmScaledProblem::kHopperBlock))
    return {};
  return Status::error(
      "gemm_scaled: wgmma takes f8 of one matrix, more than %d rows, K from 1 and blocks of %d or one; M is "
      "%lld, K is %lld, the block is %lld; mma takes all",
      GemmScaledProblem::kFewRows, GemmScaledProblem::kHopperBlock, static_cast<long long>(p.product.m),
      static_cast<long long>(k), static_cast<long long>(p.block));
}
Status wgmma_f8(const GemmScaledProblem& p) {
  if (!p.integers()) return boxes(p);
  return Status::error("gemm_scaled: wgmma_f8 takes f8e4m3 and f8e5m2, a is i8, which wgmma takes");
}
constexpr Variant kVariants[] = {
    {"tile", "gemm's micro-kernel; codes become f32, or pairs of integers, as they are packed",
     Role::standard, any},
    {"few_rows", "tensor cores; up to 16 rows of a, b's codes read from shared memory four to a lane",
     Role::standard, accepts<few_rows>},
    {"wgmma", "Hopper's tensor cores; f8 as halves, in the workspace, i8 as it is; the bits of mma",
     Role::standard, accepts<wgmma>},
    {"wgmma_f8", "Hopper's tensor cores for f8, whose sums of 128 of K keep 14 bits", Role::named,
     accepts<wgmma_f8>},
    {"mma", "tensor cores: f8 as halves, which codes become on their way to shared memory; i8 as it is",
     Role::standard, accepts<few_stages>},
    {"simt", "gemm's register tile in f32, or of i8 four products at once", Role::standard,
     accepts<few_stages>}};

/// The stride between rows r of a view's last two dimensions, `from` 2, or between its columns, 1.
std::int64_t stride_of(const ConstView& view, int from) { return view.stride[view.rank - from]; }

Status launch(const Queue& queue, const Op& op, const Call& c) {
  const ConstView &a = c.view(0), &b = c.view(1), &scale_a = c.view(2), &scale_b = c.view(3),
                  &bias = c.view(4), &y = c.view(5);
  if ((a.dtype == DType::i8) != (b.dtype == DType::i8))
    return Status::error("gemm_scaled: a is %s, b is %s: both are i8, or neither is", name(a.dtype),
                         name(b.dtype));
  GemmScaledProblem p{};
  GemmProblem& product = p.product;
  product.a = a.data;
  product.b = b.data;
  product.bias = bias.present() ? bias.data : nullptr;
  product.y = c.output(5);
  product.type = a.dtype;
  product.out = y.dtype;
  product.bias_type = bias.present() ? bias.dtype : y.dtype;
  product.bias_stride = bias.present() ? bias.stride[0] : 0;
  product.m = y.shape[y.rank - 2];
  product.n = y.shape[y.rank - 1];
  product.k = a.shape[a.rank - 1];
  product.a_row = stride_of(a, 2);
  product.a_column = stride_of(a, 1);
  product.b_row = stride_of(b, 2);
  product.b_column = stride_of(b, 1);
  product.y_row = stride_of(y, 2);
  product.y_column = stride_of(y, 1);
  product.alpha = 1;
  p.b_type = b.dtype;
  p.scale_a = static_cast<const float*>(scale_a.data);
  p.scale_b = static_cast<const float*>(scale_b.data);
  p.a_row = stride_of(scale_a, 2);
  p.a_block = stride_of(scale_a, 1);
  p.b_block = stride_of(scale_b, 2);
  p.b_column = stride_of(scale_b, 1);
  p.block = std::min(c.whole(0), std::max<std::int64_t>(product.k, 1));
  p.block_n = std::min(c.whole(1), std::max<std::int64_t>(product.n, 1));

  // A matrix as one column of one element: its outer dimensions are left.
  ConstView outer[] = {y, a, b, scale_a, scale_b};
  for (ConstView& v : outer)
    for (int d = v.rank - 2; d < v.rank; ++d) v.shape[d] = v.stride[d] = 1;
  product.batch = rows_of(outer[0], outer[1], outer[2], outer[0]);
  p.halves = halves_bytes(queue, c) != 0 ? c.workspace.pointer : nullptr;
  p.scales = rows_of(outer[3], outer[4]);
  return dispatch(queue, op, &p, c.variant);
}

}  // namespace

extern const Op gemm_scaled_op{"gemm_scaled", "forward", "gemm_scaled", kVariants,
                               kSignature,    launch,    halves_bytes};
extern const Op* const gemm_scaled_ops[] = {&gemm_scaled_op, nullptr};

Status gemm_scaled(const Queue& queue, const GemmScaledInputs& in, View y, const GemmScaledOptions& options,
                   Workspace workspace) {
  return call(queue, gemm_scaled_op, {&in.a, &in.b, &in.scale_a, &in.scale_b, &in.bias, &y},
              {static_cast<double>(options.block), static_cast<double>(options.block_n)}, options.variant,
              workspace);
}
Status gemm_scaled_workspace(const Queue& queue, const GemmScaledInputs& in, View y,
                             const GemmScaledOptions& options, std::size_t& bytes) {
  const ConstView* const views[] = {&in.a, &in.b, &in.scale_a, &in.scale_b, &in.bias, &y};
  const double values[] = {static_cast<double>(options.block), static_cast<double>(options.block_n)};
  return workspace_of(queue, gemm_scaled_op, Call{views, values}, bytes);
}

}  // namespace rooftile
