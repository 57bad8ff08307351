#pragma once
// Cross entropy in parts, for functions that never have the logits of all rows (linear_cross_entropy).
// Nothing is validated: that was done by the function's own signature.
#include "rooftile/ops/cross_entropy/cross_entropy.h"
#include "rooftile/ops/cross_entropy/cross_entropy.problem.h"

namespace rooftile::detail {

/// rows: losses and lse of some rows; `loss` is not looked at. shared: the loss of all, whose losses are
/// there; of the logits only the shape counts. `losses` must be present.
Status cross_entropy_part(const Queue& queue, CrossEntropyParts parts, const CrossEntropyInputs& inputs,
                          const CrossEntropyOutputs& outputs, const CrossEntropyOptions& options);

/// shared: what all rows share goes to `shared`, in the device's memory; of the logits only the shape counts.
/// rows: the gradients of some rows, by it.
Status cross_entropy_backward_part(const Queue& queue, CrossEntropyParts parts, CrossEntropyShared* shared,
                                   const CrossEntropyBackwardInputs& inputs, View dlogits,
                                   const CrossEntropyOptions& options);

}  // namespace rooftile::detail
