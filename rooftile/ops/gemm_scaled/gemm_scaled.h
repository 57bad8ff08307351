#pragma once
#include "rooftile/core/queue.h"
#include "rooftile/core/view.h"
#include "rooftile/core/workspace.h"

namespace rooftile {

struct GemmScaledInputs {
  ConstView a;          ///< {…, M, K}: f8e4m3, f8e5m2 or i8
  ConstView b;          ///< {…, K, N}: f8e4m3 or f8e5m2, whichever a is; i8 where a is
  ConstView scale_a;    ///< {…, M, ⌈K/block⌉} of f32
  ConstView scale_b;    ///< {…, ⌈K/block⌉, ⌈N/block_n⌉} of f32
  ConstView bias = {};  ///< optional: {N}, y's dtype or f32
};

struct GemmScaledOptions {
  std::int64_t block = 128;       ///< elements of K that share a scale; K or more: all
  std::int64_t block_n = 1;       ///< columns of b that share a scale; N or more: all
  const char* variant = nullptr;  ///< null: chosen by the library; else one of `rooftile list gemm_scaled`
};

/// A product of 8-bit codes with scales: y = Σ over blocks of K of (Σ a·b in the block) · scale_a · scale_b,
/// plus bias. y: {…, M, N}, f32, f16 or bf16.
///
/// Scales of each granularity are the same operands. What quantize_f8e4m3 gives of x and of a weight {N, K}
/// fits as it is, codes and scales of the weight with their last two dimensions exchanged. A scale for a row
/// or a column: block K. One for a tensor: its element with strides of 0. DeepSeek's squares of 128 by 128:
/// block_n 128.
///
/// Every operand has any strides: exchange the last two of a view for its transpose, give the batch a stride
/// of 0 to use one matrix throughout. M, N, K from 0 up; K = 0 leaves the bias.
///
/// Arithmetic: products of codes are exact. In a block they are accumulated in f32, for each element one
/// chain of fused multiply-adds over ascending K, from 0, however long the block is; of i8 in i32 (modulo
/// 2^32, exact up to blocks of 131071), which is then rounded to f32. Then
/// total = fma(sum, scale_a · scale_b, total) over ascending blocks, from 0; the bias is added, and y rounded
/// once. So a row of y depends on its row of a alone, and never on M, tiles, alignment or threads. A scale's
/// product is rounded to f32: beyond its range it is infinite, or 0. NaN and infinity mean what they mean in
/// the codes' formats.
///
/// The variant wgmma_f8 (Hopper; by name alone) adds in f8's own instruction: in each 128 of K, whatever the
/// block, every product and sum is cut at 2^-13 of the largest; then the sums are added in f32. Its error is
/// at most 0.017 times Σ|a·b·scales| more; of normal random codes it is about 2^-13 of that.
///
/// Workspace: gemm_scaled_workspace(…) bytes; 0 but for f8 on a Hopper GPU, one matrix and more than 16 rows:
/// there both operands become halves, which hold each code exactly, in (M + N)·2·K bytes.
///
/// Errors: an absent view, dtypes or shapes that do not fit, i8 beside another format, a block below 1, null
/// or misaligned data, an output that overlaps itself or an input, a workspace that is too small, a variant
/// that is unknown or refuses. Cost: 2·M·N·K flops, and 2·M·N more for each block; a byte for each code,
/// scales, y. Source: Micikevicius et al., arXiv:2209.05433; DeepSeek-AI, arXiv:2412.19437.
Status gemm_scaled(const Queue& queue, const GemmScaledInputs& inputs, View y,
                   const GemmScaledOptions& options = {}, Workspace workspace = {});
Status gemm_scaled_workspace(const Queue& queue, const GemmScaledInputs& inputs, View y,
                             const GemmScaledOptions& options, std::size_t& bytes);

}  // namespace rooftile
