#pragma once
#include "rooftile/core/queue.h"
#include "rooftile/core/view.h"

namespace rooftile {

struct CumsumOptions {
  bool exclusive = false;         ///< of the elements before each one, without it
  bool reverse = false;           ///< from each row's end to its beginning
  const char* variant = nullptr;  ///< null: chosen by the library; else one of `rooftile list cumsum`
};

/// Running sums of each row: y_i = x_0 + … + x_i. Exclusive: y_i = x_0 + … + x_{i-1}, and y_0 = 0. Reverse:
/// the same from the row's end, y_i = x_i + … + x_{N-1}.
///
///     cumsum(queue, x, y, {.exclusive = true});    // where each of x lengths begins
///
/// x: {…, N}, f32, f16 or bf16, rank 1 to 8, any strides: another dimension through a view that brings it to
/// the end. y: as x, may be x. Sums in f32, each y rounded once. A row is cut into parts of a fixed length,
/// whose sums are added one after the other. So the order of additions follows from N, the dtype and the
/// machine's kind alone, and rounding errors grow with the number of parts. No workspace.
///
/// What comes after an infinity or a NaN follows from IEEE 754: no element changes those before it.
///
/// Errors: an absent view, a dtype or shape other than said above, null or misaligned data, an output that
/// overlaps itself, or x in part; a variant that is unknown. Cost: x read once, y written. Source: Blelloch,
/// Prefix Sums and Their Applications (1990).
Status cumsum(const Queue& queue, ConstView x, View y, const CumsumOptions& options = {});

/// The gradient: running sums of dy the other way. dx: as dy, may be dy. Options: the forward's. Cost: as the
/// forward's.
Status cumsum_backward(const Queue& queue, ConstView dy, View dx, const CumsumOptions& options = {});

}  // namespace rooftile
