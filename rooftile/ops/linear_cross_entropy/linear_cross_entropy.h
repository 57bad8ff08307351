#pragma once
#include "rooftile/ops/cross_entropy/cross_entropy.h"

namespace rooftile {

struct LinearCrossEntropyOptions {
  Reduction reduction = Reduction::mean;
  std::int64_t ignore_index = -100;  ///< as cross_entropy's, like the next two
  float label_smoothing = 0;
  float z_loss = 0;
  std::int64_t chunk = 0;  ///< rows whose logits are in the workspace at once; 0: chosen by V, see below
  const char* variant = nullptr;  ///< null: chosen; else one of `rooftile list linear_cross_entropy`
};

struct LinearCrossEntropyInputs {
  ConstView hidden;             ///< {…, D}: f32, f16 or bf16
  ConstView weight;             ///< {V, D}, hidden's dtype: a row for each class
  ConstView target;             ///< {…}: i64 or i32, classes from 0 to V - 1, or ignore_index
  ConstView bias = {};          ///< optional: {V} of f32
  ConstView class_weight = {};  ///< optional: {V} of f32, what each class counts
};

/// cross_entropy of the logits x = hidden·weightᵀ + bias, which are never all in memory: they are computed
/// for a chunk of rows at a time, in the workspace.
///
///     linear_cross_entropy_workspace(queue, in, {.loss = loss}, {}, bytes);
///     linear_cross_entropy(queue, in, {.loss = loss}, {}, {memory, bytes});
///
/// A chunk has 2^24 / V rows, rounded down to a multiple of 128, at least 512 and at most as many as there
/// are: 64 MiB of logits, or more from V = 32,768 on, where fewer rows would read the weight too often. The
/// logits are f32, whatever hidden's dtype: they are not rounded to 16 bits, as those of a product's result
/// would be. A row's loss depends on that row alone, not on the chunk, and the reduced loss is that of all
/// rows: the mean is not one of the chunks' means. Rows are hidden's in row-major order; where its outer
/// dimensions have strides that no single one covers, chunks end with them. Any strides, rank 1 to 8.
///
/// Workspace: a chunk's logits, V rounded up to a multiple of 16, and 4 bytes a row where `losses` is absent.
/// Errors: as gemm's and cross_entropy's. Cost: 2·V·D flops a row; weight read once for each chunk. Source:
/// Wijmans et al., Cut your losses in large-vocabulary language models, arXiv:2411.09009; by chunks: Hsu et
/// al., Liger kernel, arXiv:2410.10989.
Status linear_cross_entropy(const Queue& queue, const LinearCrossEntropyInputs& inputs,
                            const CrossEntropyOutputs& outputs, const LinearCrossEntropyOptions& options = {},
                            Workspace workspace = {});
/// The bytes of workspace that linear_cross_entropy needs with these arguments.
Status linear_cross_entropy_workspace(const Queue& queue, const LinearCrossEntropyInputs& inputs,
                                      const CrossEntropyOutputs& outputs,
                                      const LinearCrossEntropyOptions& options, std::size_t& bytes);

struct LinearCrossEntropyBackwardInputs {
  ConstView hidden, weight, target, bias = {}, class_weight = {};  ///< the forward's
  ConstView lse;                                                   ///< the forward's
  ConstView dlosses = {};  ///< {…} of f32: the gradient of each row's loss
  ConstView dloss = {};    ///< one f32: the gradient of the reduced one
};
struct LinearCrossEntropyBackwardOutputs {
  View dhidden;       ///< as hidden
  View dweight = {};  ///< optional: as weight, or f32
  View dbias = {};    ///< optional: {V} of f32, the sum of dx over the rows
};

/// The gradients. With dx = cross_entropy_backward's dlogits:
///   dhidden = dx·weight,  dweight = dxᵀ·hidden,  dbias = Σ dx.
///
/// A chunk's logits are computed anew, and dx takes their place. Where hidden has 16 bits, dx is rounded to
/// them for both products, as PyTorch's is. In f16 a dx below 2^-25 is 0 (scale the loss), and one beyond
/// 65504 is infinite. dweight is accumulated over the chunks in f32, in their order, and rounded once, so its
/// bits depend on the chunk; those of dhidden do not. dbias is the sum of what was not rounded.
///
/// Workspace: the logits; with 16 bits the rounded dx, half as much, and 4·V·D bytes for a dweight that is
/// not f32; 4·V for dbias; a chunk of hidden, where its rows have no common stride. Errors: as the forward's.
/// Cost: 6·V·D flops a row, 4·V·D without dweight.
Status linear_cross_entropy_backward(const Queue& queue, const LinearCrossEntropyBackwardInputs& inputs,
                                     const LinearCrossEntropyBackwardOutputs& outputs,
                                     const LinearCrossEntropyOptions& options = {}, Workspace workspace = {});
/// The bytes of workspace that linear_cross_entropy_backward needs with these arguments.
Status linear_cross_entropy_backward_workspace(const Queue& queue,
                                               const LinearCrossEntropyBackwardInputs& inputs,
                                               const LinearCrossEntropyBackwardOutputs& outputs,
                                               const LinearCrossEntropyOptions& options, std::size_t& bytes);

}  // namespace rooftile
