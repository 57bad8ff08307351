#pragma once
#include "rooftile/core/queue.h"
#include "rooftile/core/view.h"

namespace rooftile {

struct NormalizeOptions {
  double eps = 1e-12;  ///< finite, not negative: norms below it count as eps
  const char* variant =
      nullptr;  ///< null: chosen by the library; else a name that `rooftile list l2_normalize` shows
};

// Rows divided by their norm, along the last dimension. x, y, dy, dx: one shape of rank 1 to 8, one dtype of
// f32, f16, bf16, on a CPU f64 too, any strides; an output may be an input. `norm`: {…} of f32, of f64 rows
// f64. Arithmetic in f32, of f64 in f64, outputs rounded once. A row that holds a NaN gives NaN throughout;
// one that holds an infinity gives 0, and NaN where the infinity is. Where a sum overflows f32, or squares
// are too small for it (a row of zeros, too), the row is read twice, and y is right, even if the norm itself
// is +inf in f32. (Not so of f64: where a sum overflows, y is 0; l2 norms below 1e-146 lose digits.) The
// backward needs a norm that is finite. A row of zeros gives 0, with eps 0 NaN. No workspace. A NaN is a NaN:
// which bits of it come is not promised.
//
// Errors: an operand absent but the forward's norm, a dtype or shape other than said above, null or
// misaligned data, eps negative or not finite, outputs that overlap each other, themselves, or in part an
// input; a variant that is unknown or refuses. Cost: forward 2 bytes moved for each byte of x and 3 flops an
// element, backward 3 bytes and 5 flops. Source: the definition; the same as torch.nn.functional.normalize.

/// y = x / max(n, eps), n = Σ |x|, which `norm` receives if it is there.
Status l1_normalize(const Queue& queue, ConstView x, View y, View norm = {},
                    const NormalizeOptions& options = {});
/// y = x / max(n, eps), n = √(Σ x²), which `norm` receives if it is there.
Status l2_normalize(const Queue& queue, ConstView x, View y, View norm = {},
                    const NormalizeOptions& options = {});

/// dx = (dy - sign x · Σ dy·y) / n from the forward's x and norm, y = x / n; dx = dy / eps where n < eps.
Status l1_normalize_backward(const Queue& queue, ConstView x, ConstView dy, ConstView norm, View dx,
                             const NormalizeOptions& options = {});
/// dx = (dy - y · Σ dy·y) / n from the forward's x and norm, y = x / n; dx = dy / eps where n < eps.
Status l2_normalize_backward(const Queue& queue, ConstView x, ConstView dy, ConstView norm, View dx,
                             const NormalizeOptions& options = {});

}  // namespace rooftile
