#pragma once
#include "rooftile/core/queue.h"
#include "rooftile/core/view.h"

namespace rooftile {

struct SkeletonOptions {
  const char* variant =
      nullptr;  ///< null: chosen by the library; else a name that `rooftile list skeleton` shows
};

/// Softsign: y = x/(1 + |x|). Views of one shape and dtype, f32, f16 or bf16, any strides; y may be x.
/// Arithmetic in f32, rounded once. Cost: 2n elements moved, 3n flops.
Status skeleton(const Queue& queue, ConstView x, View y, const SkeletonOptions& options = {});

}  // namespace rooftile
