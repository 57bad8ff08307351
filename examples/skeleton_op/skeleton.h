#pragma once
#include "rooftile/core/queue.h"
#include "rooftile/core/view.h"

namespace rooftile {

struct SkeletonOptions {
  const char* variant =
      nullptr;  ///< null: chosen by the library; else a name that `rooftile list skeleton` shows
};

/// Centres each row: y_i = x_i - (1/n)·Σ_j x_j along the last dimension.
///
/// x, y: one shape of rank 1 to 8, one dtype of f32, f16, bf16, any strides; y may be x. Arithmetic in f32.
/// Errors: an absent view, another dtype, different shapes or dtypes, null or misaligned data, an output that
/// overlaps itself or partly overlaps x. Cost: 2 bytes moved for each byte of x, 2 flops an element.
Status skeleton(const Queue& queue, ConstView x, View y, const SkeletonOptions& options = {});

}  // namespace rooftile
