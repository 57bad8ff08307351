#pragma once
#include "rooftile/core/queue.h"
#include "rooftile/core/view.h"

namespace rooftile {

struct SoftmaxOptions {
  float scale = 1;   ///< multiplies x before the exponential: attention's 1/√d, or an inverse temperature
  bool log = false;  ///< log-softmax: y = s·x - max - log Σ exp(s·x - max)
  const char* variant =
      nullptr;  ///< null: chosen by the library; else a name that `rooftile list softmax` shows
};

/// Softmax along the last dimension: y_i = exp(s·x_i - m) / Σ_j exp(s·x_j - m), m = max_j s·x_j.
///
/// x, y: one shape of rank 1 to 8, one dtype of f32, f16, bf16, any strides. y may be x. Arithmetic in f32.
/// A row that holds NaN or +inf, or only -inf, gives NaN throughout (log-softmax: the same). Rows of any
/// length; those longer than 65536 elements are read twice ("online"). No workspace.
///
/// Errors: an absent view, a dtype outside the three, different shapes or dtypes, rank 0, null or misaligned
/// data, an output that overlaps itself or partly overlaps x, a variant that is unknown or refuses. Cost: 2
/// bytes moved for each byte of x, 10 flops an element (log: 9). Source: Bridle 1990; the online form:
/// Milakov and Gimelshein, arXiv:1805.02867.
Status softmax(const Queue& queue, ConstView x, View y, const SoftmaxOptions& options = {});

/// The gradient: dx_i = s·y_i·(dy_i - Σ_j y_j·dy_j) from softmax's output y and the gradient dy of it; for
/// log-softmax dx_i = s·(dy_i - exp(y_i)·Σ_j dy_j), y being its output.
///
/// y, dy, dx: as x and y above; dx may be y or dy. Cost: 3 bytes moved for each byte of y, 5 flops an
/// element.
Status softmax_backward(const Queue& queue, ConstView y, ConstView dy, View dx,
                        const SoftmaxOptions& options = {});

}  // namespace rooftile
