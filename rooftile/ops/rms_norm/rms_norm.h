#pragma once
#include "rooftile/core/queue.h"
#include "rooftile/core/view.h"
#include "rooftile/core/workspace.h"

namespace rooftile {

struct RmsNormOptions {
  double eps = 1e-6;         ///< finite, not negative; stands inside the root. The backward does not use it
  bool unit_offset = false;  ///< w = weight + 1, for models that store it so (Gemma); else w = weight
  const char* variant = nullptr;  ///< null: chosen by the library; else one of `rooftile list rms_norm`
};

struct RmsNormInputs {
  ConstView x;              ///< {…, N}: f32, f16, bf16, on a CPU f64
  ConstView residual = {};  ///< optional: as x, added to it first
  ConstView weight = {};    ///< optional: {N}, f32 or x's dtype
};
struct RmsNormOutputs {
  View y;          ///< {…, N}, x's dtype; may be x or residual
  View sum = {};   ///< optional: receives h, as y; may be x or residual
  View rstd = {};  ///< optional: {…} of f32, of f64 rows f64, for the backward
};

/// Root mean square normalisation along the last dimension, of h = x + residual (or x) rounded to x's dtype:
///   y = h · rstd · w,  rstd = 1 / √(Σ h² / N + eps),
/// w = weight, weight + 1 (unit_offset), or 1 where there is no weight.
///
///     rms_norm(queue, {.x = x, .weight = w}, {.y = y, .rstd = rstd});
///
/// Any strides, rank 1 to 8, rows of any length. Arithmetic in f32, of f64 in f64; y rounded once. A row that
/// holds a NaN gives NaN throughout; one that holds an infinity gives 0, and NaN where the infinity is. Where
/// Σ h² overflows f32, or squares are too small for it, the row is read twice, and the result is right as
/// long as rstd is finite in f32: with eps 0, for a root mean square above 2^-128. (Not so of f64: from 1e154
/// on y is 0; with eps 0, digits are lost below 1e-146.) With eps 0 a row of zeros gives rstd +inf and y NaN.
/// Where N is 0, rstd is NaN. No workspace. A NaN is a NaN: which bits of it come is not promised.
///
/// Errors: x or y absent, a dtype or shape other than said above, null or misaligned data, eps negative or
/// not finite, outputs that overlap each other, themselves, or in part an input; a variant that is unknown or
/// refuses. Cost: 2 bytes moved for each byte of x (4 with residual and
/// sum), 5 flops an element. Source: Zhang and Sennrich, arXiv:1910.07467.
Status rms_norm(const Queue& queue, const RmsNormInputs& inputs, const RmsNormOutputs& outputs,
                const RmsNormOptions& options = {});

struct RmsNormBackwardInputs {
  ConstView x;            ///< what was normalised: the forward's x, or its `sum` where there was a residual
  ConstView dy;           ///< as x
  ConstView weight = {};  ///< as the forward's; absent if it had none
  ConstView rstd = {};    ///< the forward's
};
struct RmsNormBackwardOutputs {
  View dx;            ///< as x; may be x or dy. Where there was a residual, its gradient is the same
  View dweight = {};  ///< optional: {N}, f32 or the weight's dtype (without a weight: or x's)
};

/// The gradient. With x̂ = x · rstd and g = dy · w, along a row:
///   dx = rstd · (g - x̂ · Σ g·x̂ / N),
/// and over all rows dweight = Σ dy·x̂.
///
/// The weight's gradient is a sum in f32 (of f64 in f64) over fixed blocks of rows, in the rows' order, and
/// then over the blocks in theirs; the blocks follow from the shape, the dtype and the architecture, so every
/// bit is the same at any number of threads. It needs a workspace: ask rms_norm_backward_workspace; dx alone
/// needs none.
///
/// Errors: as rms_norm's; a workspace too small, not aligned to 64 bytes, or not apart from all arguments.
/// Cost: 3 bytes moved for each byte of x, 11 flops an element.
Status rms_norm_backward(const Queue& queue, const RmsNormBackwardInputs& inputs,
                         const RmsNormBackwardOutputs& outputs, const RmsNormOptions& options = {},
                         Workspace workspace = {});

/// The bytes of workspace that rms_norm_backward needs with these arguments.
Status rms_norm_backward_workspace(const Queue& queue, const RmsNormBackwardInputs& inputs,
                                   const RmsNormBackwardOutputs& outputs, std::size_t& bytes);

}  // namespace rooftile
