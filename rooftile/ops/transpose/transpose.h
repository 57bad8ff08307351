#pragma once
#include "rooftile/core/permuted.h"
#include "rooftile/core/queue.h"
#include "rooftile/core/view.h"

namespace rooftile {

struct TransposeOptions {
  const char* variant =
      nullptr;  ///< null: chosen by the library; else a name that `rooftile list transpose` shows
};

/// y[…, n, m] = x[…, m, n]: the last two dimensions exchanged, those before them a batch; every bit as it is
/// (a NaN keeps its payload).
///
/// x: rank 2 to 8, any dtype but packed u4, whose elements have no address of their own. y: x's shape with
/// the last two sizes exchanged, x's dtype, apart from x: not in place. Any strides. No workspace.
///
/// Errors: an absent view, u4, a rank below 2, another shape or dtype, null or misaligned data, an output
/// that holds two elements at one address or overlaps x, a variant that is unknown or refuses. Cost: 2n
/// elements moved, no flops.
Status transpose(const Queue& queue, ConstView x, View y, const TransposeOptions& options = {});

struct PermuteOptions {
  const char* variant = nullptr;  ///< as transpose's
};

/// y ← x, for tensors whose dimensions lie in memory in different orders; every bit as it is. What copy does,
/// but in tiles of the dimensions in which x and y have neighbours. With `permuted`, which changes a view's
/// order, NHWC to NCHW is permute(queue, permuted(x, {0, 3, 1, 2}), y).
///
/// x: rank 0 to 8, any dtype but packed u4, any strides: 0 broadcasts, negative ones reverse. y: x's shape
/// and dtype, any strides, apart from x: not in place. No workspace.
///
/// Errors: an absent view, u4, an order that does not name each dimension once, another shape or dtype, null
/// or misaligned data, an output that holds two elements at one address or overlaps x, a variant that is
/// unknown or refuses. Cost: 2n elements moved, no flops.
Status permute(const Queue& queue, ConstView x, View y, const PermuteOptions& options = {});

}  // namespace rooftile
