#pragma once
#include "rooftile/core/queue.h"
#include "rooftile/core/view.h"

namespace rooftile {

enum class RowReduction { sum, mean, max, min, logsumexp, product };

struct RowReduceOptions {
  RowReduction kind = RowReduction::sum;
  const char* variant = nullptr;  ///< null: chosen by the library; else one of `rooftile list row_reduce`
};

/// One number for each row, its last dimension's: Σ x, Σ x/N, the largest, the smallest, log Σ e^x, or Π x.
///
/// x: {…, N}, f32, f16 or bf16, rank 1 to 8, any strides: another dimension is reduced through a view that
/// brings it to the end. y: {…}, x's dtype, apart from x. Arithmetic in f32, y rounded once. A lane adds up
/// its terms of a segment, then adds this to its sum of the row: chains of additions stay short, and with
/// them the rounding error, in long rows. The order follows from N, the dtype and the machine's kind alone.
/// log Σ e^x subtracts the row's largest first. Π x is a product of partial products in f32: it is 0 or
/// infinite where one of these leaves f32's range. No workspace.
///
/// A NaN in a row gives NaN. Of an empty row the sum is 0, the product 1, the mean NaN, log Σ e^x -∞; the
/// largest and the smallest are refused.
///
/// Errors: an absent view, a dtype or shape other than said above, null or misaligned data, outputs that
/// overlap, an empty row of which there is no largest; a variant that is unknown. Cost: x read once.
Status row_reduce(const Queue& queue, ConstView x, View y, const RowReduceOptions& options = {});

struct RowReduceBackwardInputs {
  ConstView x;   ///< the forward's
  ConstView y;   ///< its result
  ConstView dy;  ///< as y
};

/// The gradient of the sum, the mean and log Σ e^x: dx = dy, dy/N, dy·e^(x - y); of a row whose y is -∞, 0.
/// Of the product: dy times the product of the others. With P the product of all x that are not 0, computed
/// anew in f32, that is dy·(P/x) where no x is 0; where one is, dy·P there and dy·(P·0) elsewhere; of several
/// zeros dy·(P·0) throughout.
///
/// The largest and the smallest are refused. dx: as x, may be x. Cost: x read, dx written; of the product x
/// read twice.
Status row_reduce_backward(const Queue& queue, const RowReduceBackwardInputs& inputs, View dx,
                           const RowReduceOptions& options = {});

struct RowArgOptions {
  bool least = false;  ///< of the smallest element
  const char* variant = nullptr;
};

/// The index of each row's largest element, or smallest; the first of several, and the first NaN where there
/// is one. x: as row_reduce's, 1 <= N < 2^31. index: {…} of i64. Cost: x read once.
Status row_arg(const Queue& queue, ConstView x, View index, const RowArgOptions& options = {});

}  // namespace rooftile
