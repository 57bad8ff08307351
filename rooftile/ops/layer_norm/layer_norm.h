#pragma once
#include "rooftile/core/queue.h"
#include "rooftile/core/view.h"
#include "rooftile/core/workspace.h"

namespace rooftile {

struct LayerNormOptions {
  /// Finite, not negative; stands inside the root. 0 is for rows that vary: one value throughout then gives
  /// rstd +inf and y NaN. Backward does not use it.
  double eps = 1e-5;
  const char* variant =
      nullptr;  ///< null: chosen by the library; else a name that `rooftile list layer_norm` shows
};

struct LayerNormInputs {
  ConstView x;              ///< {…, N}: f32, f16, bf16, on a CPU f64
  ConstView residual = {};  ///< optional: as x, added to it first
  ConstView weight = {};    ///< optional: {N}, f32 or x's dtype
  ConstView bias = {};      ///< optional: {N}, the weight's dtype; without a weight f32 or x's dtype
};
struct LayerNormOutputs {
  View y;          ///< {…, N}, x's dtype; may be x or residual
  View sum = {};   ///< optional: receives h, as y; may be x or residual
  View mean = {};  ///< optional: {…} of f32, of f64 rows f64, for the backward
  View rstd = {};  ///< optional: as mean
};

/// Layer normalisation along the last dimension, of h = x + residual (or x) rounded to x's dtype:
///   y = (h - mean) · rstd · weight + bias,  mean = Σ h / N,  rstd = 1 / √(Σ (h - mean)² / N + eps).
///
///     layer_norm(queue, {.x = x, .weight = w, .bias = b}, {.y = y, .mean = mean, .rstd = rstd});
///
/// Any strides, rank 1 to 8, rows of any length. Arithmetic in f32, of f64 in f64; statistics are those of
/// the rounded h, whether `sum` is asked for or not, because that is what the backward will see. The variance
/// has no cancellation: a row of 1000 ± 1, or of one value throughout, is as exact as one around 0, on every
/// device. A row that holds NaN or an infinity gives NaN throughout. Where Σ h or Σ (h - mean)² overflows
/// f32, or the squares are too small for it, the row is read again, and the result is right (not in the
/// ladder's rungs, nor of f64, whose squares leave it above 1e154; with eps 0, digits are lost below 1e-146).
/// Where N is 0, mean and rstd are NaN. No workspace. A NaN is a NaN: which bits of it come is not promised.
///
/// Errors: x or y absent, a dtype or shape other than said above, null or misaligned data, eps negative or
/// not finite, outputs that overlap each other, themselves, or in part an input; a variant that is unknown or
/// refuses. Cost: 2 bytes moved for each byte of x (4 with residual and sum), 7 flops an element. Source: Ba,
/// Kiros and Hinton, arXiv:1607.06450.
Status layer_norm(const Queue& queue, const LayerNormInputs& inputs, const LayerNormOutputs& outputs,
                  const LayerNormOptions& options = {});

struct LayerNormBackwardInputs {
  ConstView x;            ///< what was normalised: the forward's x, or its `sum` where there was a residual
  ConstView dy;           ///< as x
  ConstView weight = {};  ///< as the forward's; absent if it had none
  ConstView mean = {};    ///< the forward's
  ConstView rstd = {};    ///< the forward's
};
struct LayerNormBackwardOutputs {
  View dx;            ///< as x; may be x or dy. Where there was a residual, its gradient is the same
  View dweight = {};  ///< optional: {N}, f32 or the weight's dtype (without a weight: or x's)
  View dbias = {};    ///< optional: {N}, dweight's dtype
};

/// The gradient. With x̂ = (x - mean) · rstd and g = dy · weight, along a row:
///   dx = rstd · (g - Σ g / N - x̂ · Σ g·x̂ / N),
/// and over all rows dweight = Σ dy·x̂, dbias = Σ dy.
///
/// Right where the variance and its inverse are finite in f32: for standard deviations from 1e-18 to 1e18; in
/// f64 from 1e-153 to 1e153.
///
/// Weight gradients are sums in f32 (of f64 in f64) over fixed blocks of rows, in the rows' order, and then
/// over the blocks in theirs; the blocks follow from the number of rows alone, so every bit is the same at
/// any number of threads. They need a workspace: ask layer_norm_backward_workspace; dx alone needs none.
///
/// Errors: as layer_norm's; a workspace too small, not aligned to 64 bytes, or not apart from all arguments.
/// Cost: 3 bytes moved for each byte of x, 13 flops an element.
Status layer_norm_backward(const Queue& queue, const LayerNormBackwardInputs& inputs,
                           const LayerNormBackwardOutputs& outputs, const LayerNormOptions& options = {},
                           Workspace workspace = {});

/// The bytes of workspace that layer_norm_backward needs with these arguments.
Status layer_norm_backward_workspace(const Queue& queue, const LayerNormBackwardInputs& inputs,
                                     const LayerNormBackwardOutputs& outputs, std::size_t& bytes);

}  // namespace rooftile
