#pragma once
#include "rooftile/core/queue.h"
#include "rooftile/core/view.h"
#include "rooftile/core/workspace.h"

namespace rooftile {

struct SkeletonOptions {
  const char* variant =
      nullptr;  ///< null: chosen by the library; else a name that `rooftile list skeleton` shows
};

/// Centred rows along the last dimension: y = (x - mean) · weight, mean = Σ x / N.
///
/// x, y: one shape of rank 1 to 8, one dtype of f32, f16, bf16, any strides; y may be x. `weight`, optional:
/// {N}, f32 or x's dtype. `mean`, optional: {…} of f32, for the backward. Arithmetic in f32. No workspace.
/// Errors: …  Cost: 2 bytes moved for each byte of x, 3 flops an element. Source: …
Status skeleton(const Queue& queue, ConstView x, ConstView weight, View y, View mean = {},
                const SkeletonOptions& options = {});

/// The gradient. With g = dy · weight: dx = g - Σ g / N, and over all rows dweight = Σ dy·(x - mean).
///
/// dweight, optional: {N}, f32 or the weight's dtype; it needs a workspace. Cost: 3 bytes moved for each byte
/// of x, 6 flops an element.
Status skeleton_backward(const Queue& queue, ConstView x, ConstView dy, ConstView weight, ConstView mean,
                         View dx, View dweight = {}, const SkeletonOptions& options = {},
                         Workspace workspace = {});

/// The bytes of workspace that skeleton_backward needs with these arguments.
Status skeleton_backward_workspace(const Queue& queue, ConstView x, ConstView dy, ConstView weight,
                                   ConstView mean, View dx, View dweight, std::size_t& bytes);

}  // namespace rooftile
