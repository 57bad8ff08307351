#pragma once
#include <cstdint>
#include <span>

#include "rooftile/core/queue.h"
#include "rooftile/core/view.h"

namespace rooftile {

struct UnscaleOptions {
  const char* variant = nullptr;  ///< null: chosen by the library; else one of `rooftile list unscale`
};

/// Divides the gradients of a scaled loss by its scale, in place, and says whether one of them overflowed.
///
///     g ← g · (1 / scale)
///     found_inf = 1 if an element of any gradient was infinite or NaN, else 0
///
/// gradients: f32, f16 or bf16, of any shapes and strides; dtypes may differ from tensor to tensor. No
/// tensors: found_inf is 0. scale: one f32, the loss's. found_inf: one f32. Both are in the device's memory:
/// adamw and sgd take found_inf, so a step waits for no transfer. The quotient 1 / scale is computed in f64
/// and rounded to f32, the product in f32, then rounded to the gradient's dtype: each as IEEE says, so every
/// machine gives the same bits. It is the value before the product that found_inf is about. No workspace.
///
/// An optimiser that takes gradient_scale needs no unscaled gradients: pass 1 / scale there, and found_inf
/// of grad_norm, which reads the gradients alone.
///
/// Errors: an absent scale or found_inf, a dtype or shape other than said above, gradients that hold two
/// elements at one address, operands that overlap. Different gradients are not compared: overlapping ones
/// are the caller's fault. Cost: gradients are read and written once; on a GPU a launch for each 160
/// contiguous tensors, one for each strided one, and a short one before them. Source: Micikevicius et al.,
/// arXiv:1710.03740; torch._amp_foreach_non_finite_check_and_unscale_, which leaves found_inf as it is where
/// it finds nothing.
Status unscale(const Queue& queue, std::span<const View> gradients, ConstView scale, View found_inf,
               const UnscaleOptions& options = {});

struct UpdateLossScaleOptions {
  double growth_factor = 2;             ///< at least 1
  double backoff_factor = 0.5;          ///< from 0 to 1
  std::int64_t growth_interval = 2000;  ///< from 1 to 2^31 - 1
  const char* variant =
      nullptr;  ///< null: chosen by the library; else one of `rooftile list update_loss_scale`
};

/// The scale of the next step's loss, in place.
///
///     found_inf ≠ 0: scale ← scale · backoff_factor, growth_tracker ← 0
///     else:          growth_tracker ← growth_tracker + 1; at growth_interval it becomes 0, and
///                    scale ← scale · growth_factor, unless that is infinite
///
/// scale: one f32. growth_tracker: one i32, the steps since the scale last changed. found_inf: one f32, as
/// unscale or grad_norm gives it; of several ranks, their maximum. All are in the device's memory. Products
/// are rounded from f64. No workspace.
///
/// Errors: an absent view, a dtype or size other than said above, views that overlap, an option out of its
/// range. Cost: one thread. Source: torch._amp_update_scale_, but that a growth_tracker beyond the interval,
/// as one that was made shorter leaves behind, counts as at it.
Status update_loss_scale(const Queue& queue, View scale, View growth_tracker, ConstView found_inf,
                         const UpdateLossScaleOptions& options = {});

}  // namespace rooftile
