#pragma once
#include <span>

#include "rooftile/core/queue.h"
#include "rooftile/core/view.h"

namespace rooftile {

/// One parameter and what belongs to it, all of one shape: rank 0 to 8, any strides (a view that writes holds
/// no element twice). Memory of different operands lies apart.
struct SgdTensors {
  View parameter;             ///< f32, f16 or bf16; read and written
  ConstView gradient;         ///< f32, f16 or bf16
  View momentum_buffer = {};  ///< optional: a running sum of gradients, f32 or the parameter's dtype
  View master = {};  ///< optional, f32: the parameter itself; `parameter` receives it rounded, unread
};

struct SgdOptions {
  double lr = 1e-3;     ///< not negative, as weight_decay
  double momentum = 0;  ///< not negative; other than 0 it takes momentum_buffer
  double dampening = 0;
  double weight_decay = 0;
  bool nesterov = false;          ///< steps along gradient + momentum · momentum_buffer
  bool maximize = false;          ///< climbs
  std::int64_t step = 0;          ///< this step's number, from 1 on; not looked at where `steps` is present
  const char* variant = nullptr;  ///< null: chosen by the library; else one of `rooftile list sgd`
};

/// One step of stochastic gradient descent for any number of parameters in one call, in place.
///
///     g = gradient · gradient_scale (-g to maximize) + weight_decay · p
///     b = momentum·b + (1 - dampening)·g; in step 1, b = g
///     p -= lr · (nesterov ? g + momentum·b : b); without momentum_buffer, p -= lr · g
///
/// Arithmetic is in f32 from p (the master, where there is one) and b before they are rounded to their
/// dtypes. Tensors of one call may have different shapes, dtypes, masters and momentum buffers.
///
/// In step 1 momentum_buffer may hold anything. Without dampening a call need not say which step it is, if
/// momentum_buffer is 0 before the first. steps: one i64, how many steps were done; the call counts.
/// gradient_scale: one f32, 1 over the loss's scale, or a factor that clips, as grad_norm gives. found_inf:
/// one f32; where it is not 0, the call changes nothing, `steps` included. All three are in the device's
/// memory, so a step waits for no transfer; pass {} for what is absent. No workspace.
///
/// Errors: dampening or nesterov without a momentum_buffer for each tensor, as momentum; dampening where
/// steps is absent and step 0; an absent view, a shape or dtype other than said above, outputs that hold two
/// elements at one address or overlap another operand of the same tensor, an option out of its range.
/// Different tensors are not compared: overlapping ones are the caller's fault. Cost: gradient read,
/// parameter, momentum_buffer and master read and written; on a GPU a launch for each 80 contiguous tensors,
/// one for each strided one, and a short one before them. Source: torch.optim.SGD; Sutskever, Martens, Dahl
/// and Hinton, ICML 2013.
Status sgd(const Queue& queue, std::span<const SgdTensors> tensors, View steps, ConstView gradient_scale,
           ConstView found_inf, const SgdOptions& options = {});

}  // namespace rooftile
