#pragma once
#include "rooftile/core/queue.h"
#include "rooftile/core/view.h"

namespace rooftile {

struct NormalizeOptions {
  float eps = 1e-12f;  ///< finite, not negative: norms below it count as eps
  const char* variant =
      nullptr;  ///< null: chosen by the library; else a name that `rooftile list l2_normalize` shows
};

/// Rows divided by their norm, along the last dimension:
///   y = x / max(n, eps),  n = Σ |x| (l1_normalize) or √(Σ x²) (l2_normalize).
///
/// x, y: one shape of rank 1 to 8, one dtype of f32, f16, bf16, any strides; y may be x. `norm`, optional:
/// {…} of f32, receives n for the backward. Arithmetic in f32, y rounded once. A row that holds a NaN gives
/// NaN throughout; one that holds an infinity, 0 and NaN where the infinity is, as one whose sum overflows
/// f32 gives 0. Elements below 1e-23 add nothing to n of l2_normalize: their squares are 0 in f32. A row of
/// zeros gives 0, with eps 0 NaN. No workspace. A NaN is a NaN: which bits of it come
/// is not promised.
///
/// Errors: x or y absent, a dtype or shape other than said above, null or misaligned data, eps negative or
/// not finite, outputs that overlap each other, themselves, or in part x; a variant that is unknown or
/// refuses. Cost: 2 bytes moved for each byte of x, 3 flops an element. Source: the definition; as
/// torch.nn.functional.normalize.
Status l1_normalize(const Queue& queue, ConstView x, View y, View norm = {},
                    const NormalizeOptions& options = {});
Status l2_normalize(const Queue& queue, ConstView x, View y, View norm = {},
                    const NormalizeOptions& options = {});

/// The gradient, from the forward's x and norm, and the gradient dy of y. With y = x / n along a row:
///   dx = (dy - s·Σ dy·y) / n,  s = sign x (l1; 0 of 0) or y (l2),
/// and dx = dy / eps where n < eps.
///
/// x, dy, dx: as x above; dx may be x or dy. Cost: 3 bytes moved for each byte of x, 5 flops an element.
Status l1_normalize_backward(const Queue& queue, ConstView x, ConstView dy, ConstView norm, View dx,
                             const NormalizeOptions& options = {});
Status l2_normalize_backward(const Queue& queue, ConstView x, ConstView dy, ConstView norm, View dx,
                             const NormalizeOptions& options = {});

}  // namespace rooftile
