#pragma once
#include "rooftile/core/queue.h"
#include "rooftile/core/view.h"
#include "rooftile/core/workspace.h"

namespace rooftile {

/// How rows' losses become one: their mean, weighted as the rows are, or their sum.
enum class Reduction : std::uint8_t { mean, sum };

struct CrossEntropyOptions {
  Reduction reduction = Reduction::mean;
  std::int64_t ignore_index = -100;  ///< a target that is this: the row has no loss and no gradient
  float label_smoothing = 0;         ///< ε, from 0 to 1: so much of the target is spread over all classes
  float z_loss = 0;                  ///< z, finite, not negative: z·lse² in addition
  const char* variant = nullptr;  ///< null: chosen by the library; else one of `rooftile list cross_entropy`
};

struct CrossEntropyInputs {
  ConstView logits;       ///< {…, C}: f32, f16 or bf16
  ConstView target;       ///< {…}: i64 or i32, classes from 0 to C - 1, or ignore_index
  ConstView weight = {};  ///< optional: {C} of f32, what each class counts
};
struct CrossEntropyOutputs {
  View loss;         ///< one f32: the mean or the sum of the rows' losses
  View losses = {};  ///< optional: {…} of f32, each row's loss
  View lse = {};     ///< optional: {…} of f32, each row's log Σ exp(logits), for the backward
};

/// Cross entropy of class indices, along the last dimension. Of a row x with the target y and weights w (1
/// where there are none):
///   lse  = log Σ_c exp(x_c)
///   l    = (1 - ε)·w_y·(lse - x_y) + ε/C · Σ_c w_c·(lse - x_c) + z·lse²
///   loss = Σ l, or its mean Σ l / Σ w_y over the rows that are not ignored: NaN where all are.
///
///     cross_entropy(queue, {.logits = x, .target = y}, {.loss = loss, .lse = lse});
///
/// Any strides, rank 1 to 8, rows of any length, each read once. Arithmetic in f32; losses, as f32, are
/// added up in f64, in an order that follows from their number alone. An ignored row's loss is 0, whatever it
/// holds; its lse is there all the same. A target outside of 0 … C - 1 that is not ignore_index gives NaN for
/// its row, and so for the loss; nothing outside of the row is read, and the row counts in no mean's divisor.
/// A row that holds a NaN or +inf, or -inf throughout, gives NaN. Without `losses` it needs a workspace: ask
/// cross_entropy_workspace.
///
/// Errors: logits, target or loss absent, a dtype or shape other than said above, null or misaligned
/// data, options outside of their ranges, outputs that overlap each other, themselves or an input; a
/// workspace too small, not aligned to 64 bytes or not apart from all arguments; a variant that is unknown or
/// refuses. Cost: the logits read once, 4 flops an element. Source: the online sum, Milakov and Gimelshein,
/// arXiv:1805.02867; label smoothing, Szegedy et al., arXiv:1512.00567; the z-loss, Chowdhery et al.,
/// arXiv:2204.02311.
Status cross_entropy(const Queue& queue, const CrossEntropyInputs& inputs, const CrossEntropyOutputs& outputs,
                     const CrossEntropyOptions& options = {}, Workspace workspace = {});
/// The bytes of workspace that cross_entropy needs with these arguments.
Status cross_entropy_workspace(const Queue& queue, const CrossEntropyInputs& inputs,
                               const CrossEntropyOutputs& outputs, std::size_t& bytes);

struct CrossEntropyBackwardInputs {
  ConstView logits, target, weight = {};  ///< the forward's
  ConstView lse;                          ///< the forward's
  ConstView dlosses = {};                 ///< {…} of f32: the gradient of each row's loss
  ConstView dloss = {};                   ///< one f32: the gradient of the reduced one
};

/// The gradient. With p = exp(min(x - lse, 0)), and g a row's dlosses plus dloss (sum) or dloss / Σ w_y
/// (mean):
///   dx_c = g·((A + 2·z·lse)·p_c - [c = y]·(1 - ε)·w_y - ε/C·w_c),  A = (1 - ε)·w_y + ε/C·Σ w.
///
/// dlogits: as logits, and may be logits. An ignored row's gradient is 0, whatever it holds; that of a row
/// whose target is outside of 0 … C - 1 is NaN. Without dlosses and dloss it is the loss's own
/// gradient, dloss = 1. Products with g, 2·z·lse·g too, are f32: where one overflows, dx
/// is what IEEE arithmetic makes of it. No workspace.
///
/// Errors: as cross_entropy's. Cost: 2 bytes moved for each byte of the logits, 5 flops an element.
Status cross_entropy_backward(const Queue& queue, const CrossEntropyBackwardInputs& inputs, View dlogits,
                              const CrossEntropyOptions& options = {});

}  // namespace rooftile
