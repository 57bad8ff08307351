#pragma once
#include "rooftile/core/queue.h"
#include "rooftile/core/view.h"
#include "rooftile/core/workspace.h"

namespace rooftile {

struct DytOptions {
  const char* variant = nullptr;  ///< null: chosen by the library; else a name that `rooftile list dyt` shows
};

struct DytInputs {
  ConstView x;            ///< {…, N}: f32, f16 or bf16
  ConstView alpha;        ///< one element, f32 or x's dtype
  ConstView weight = {};  ///< optional: {N}, alpha's dtype
  ConstView bias = {};    ///< optional: {N}, alpha's dtype
};

/// Dynamic tanh, which takes the place of a normalisation: for each element
///   y = weight · tanh(alpha · x) + bias,
/// weight 1 and bias 0 where there is none. No element needs the others of its row.
///
///     dyt(queue, {.x = x, .alpha = alpha, .weight = w, .bias = b}, y);
///
/// Any strides, rank 1 to 8, rows of any length; y: as x, may be x. Arithmetic in f32, y rounded once. No
/// product of alpha and x is too large: an infinite one gives bias ± weight. A NaN gives a NaN, and alpha 0
/// one where x is infinite. No workspace. A NaN is a NaN: which bits of it come is not promised.
///
/// Errors: x, alpha or y absent, a dtype or shape other than said above, null or misaligned data, an output
/// that overlaps itself or in part an input; a variant that is unknown or refuses. Cost: 2 bytes moved for
/// each byte of x, 4 flops an element. Source: Zhu, Chen, He, LeCun and Liu, arXiv:2503.10622.
Status dyt(const Queue& queue, const DytInputs& inputs, View y, const DytOptions& options = {});

struct DytBackwardInputs {
  ConstView x;            ///< the forward's
  ConstView dy;           ///< as x
  ConstView alpha;        ///< the forward's
  ConstView weight = {};  ///< the forward's; absent if it had none
};
struct DytBackwardOutputs {
  View dx;            ///< as x; may be x or dy
  View dalpha = {};   ///< optional: one element, f32 or alpha's dtype
  View dweight = {};  ///< optional: {N}, dalpha's dtype
  View dbias = {};    ///< optional: {N}, dalpha's dtype
};

/// The gradient. With g = dy · weight · tanh'(alpha · x):
///   dx = g · alpha;
/// over all rows dweight = Σ dy · tanh(alpha · x) and dbias = Σ dy; over all elements dalpha = Σ g · x.
/// tanh' keeps its relative accuracy where tanh is near ±1.
///
/// These sums are taken in f32 over fixed blocks of rows and then over the blocks in their order. Blocks
/// follow from the shape, the dtype and the architecture, so every bit is the same at any number of threads.
/// They need a workspace: ask dyt_backward_workspace; dx alone needs none. An infinite x makes dalpha NaN, as
/// 0 · ∞ is.
///
/// Errors: as dyt's; outputs that overlap each other; a workspace too small, not aligned to 64 bytes, or not
/// apart from all arguments. Cost: 3 bytes moved for each byte of x, 18 flops an element.
Status dyt_backward(const Queue& queue, const DytBackwardInputs& inputs, const DytBackwardOutputs& outputs,
                    const DytOptions& options = {}, Workspace workspace = {});

/// The bytes of workspace that dyt_backward needs with these arguments.
Status dyt_backward_workspace(const Queue& queue, const DytBackwardInputs& inputs,
                              const DytBackwardOutputs& outputs, std::size_t& bytes);

}  // namespace rooftile
