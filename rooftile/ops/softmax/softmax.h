#pragma once
#include "rooftile/core/queue.h"
#include "rooftile/core/view.h"

namespace rooftile {

struct SoftmaxOptions {
  double scale = 1;     ///< s, which multiplies x: attention's 1/√d, or an inverse temperature; any number
  bool log = false;     ///< log-softmax: y = s·x - max - log Σ exp(s·x - max)
  bool causal = false;  ///< x is (…, Q, K): query i sees the keys j <= i + K - Q; implies `masked`
  bool masked = false;  ///< an s·x of -inf is a masked element; a row without others gives 0 (log: -inf)
  const char* variant =
      nullptr;  ///< null: chosen by the library; else a name that `rooftile list softmax` shows
};

/// Softmax along the last dimension: y_i = exp(s·x_i - m) / Σ_j exp(s·x_j - m), m = max_j s·x_j.
///
/// x, y: one shape of rank 1 to 8, one dtype of f32, f16, bf16, on a CPU f64 too, any strides. y may be x.
/// Arithmetic, and the scale, in f32, of f64 in f64.
/// Any finite row is right with any finite scale, though s·x overflow: differences x_i - x_j come before the
/// scale, so that equal elements are equally probable, -1e30 throughout (a masked row) or ±FLT_MAX; only a
/// log-probability beyond y's dtype is -inf. A row of which some s·x is NaN (x is, or s is 0 and x infinite)
/// or +inf, or all are -inf, gives NaN throughout; so does a scale of NaN or infinity. Rows of any length;
/// those longer than 65536 elements are read twice ("online"), and those of f64. No workspace. A NaN is a
/// NaN: which bits of it come is not promised.
///
/// causal: rows are queries, which the last dimension but one counts; the last one sees all keys. What a
/// query does not see is not read and gives 0 (log: -inf). masked: a row whose s·x are all -inf gives 0
/// throughout (log: -inf) instead of NaN, as where -inf was put in place of what a mask hides.
///
/// Errors: an absent view, a dtype other than these, different shapes or dtypes, rank 0, null or misaligned
/// data, an output that overlaps itself or partly overlaps x, causal with rank 1, a variant that is unknown
/// or refuses: causal, masked and f64 rows are "online". Cost: 2 bytes moved for each byte of x (causal: of
/// what is seen, and 1 for the rest), 10 flops an element (log: 9). Source: Bridle 1990; the online form:
/// Milakov and Gimelshein, arXiv:1805.02867.
Status softmax(const Queue& queue, ConstView x, View y, const SoftmaxOptions& options = {});

/// The gradient: dx_i = s·y_i·(dy_i - Σ_j y_j·dy_j) from softmax's output y and the gradient dy of it; for
/// log-softmax dx_i = s·(dy_i - exp(y_i)·Σ_j dy_j), y being its output.
///
/// y, dy, dx: as x and y above; dx may be y or dy. With causal or masked, an element whose y is 0 (log: -inf)
/// is masked: its dx is 0, and its dy does not count. Products and sums are f32 (f64): where one overflows,
/// or an input is infinite or NaN, dx is what IEEE arithmetic makes of it. Cost: 3 bytes moved for each byte
/// of y, 5 flops an element.
Status softmax_backward(const Queue& queue, ConstView y, ConstView dy, View dx,
                        const SoftmaxOptions& options = {});

}  // namespace rooftile
