#pragma once
#include <span>

#include "rooftile/core/queue.h"
#include "rooftile/core/view.h"

namespace rooftile {

struct GradNormOptions {
  double max_norm = 1;            ///< of coefficient: not negative
  const char* variant = nullptr;  ///< null: chosen by the library; else one of `rooftile list grad_norm`
};

/// The L2 norm of all gradients together, and what an optimiser needs to clip by it.
///
///     norm = |gradient_scale| · √Σ g² over all elements of all tensors
///     coefficient = gradient_scale · min(1, max_norm / (norm + 1e-6))
///     found_inf = 1 if an element is infinite or NaN, else 0
///
/// gradients: f32, f16 or bf16, of any shapes and strides; dtypes may differ from tensor to tensor. No
/// tensors: norm is 0. gradient_scale, one f32, 1 over the loss's scale; pass {} for 1. norm, coefficient and
/// found_inf, one f32 each, the last two optional. All are in the device's memory: adamw and sgd take
/// coefficient as their gradient_scale, and found_inf, and no gradient is written. No workspace.
///
/// Squares are added in f32 per chunk of 16384 neighbours, in row-major order; where such a sum leaves
/// [2^-80, 2^126], the chunk is scaled by a power of two. So no square overflows, and none that counts
/// underflows. Chunks are added in f64, in an order that follows from the sizes alone: the bits depend on no
/// thread, stride or address. The clipping is computed from the f64 norm: it is right even where norm is
/// beyond f32.
///
/// Errors: an absent norm, a dtype or shape other than said above, an output that overlaps an input, an
/// option out of its range. Cost: gradients are read once; on a GPU a launch for each 160 contiguous tensors,
/// one for each strided one, and a short one behind them. Source: J. L. Blue, A Portable Fortran Program to
/// Find the Euclidean Norm of a Vector, ACM TOMS 4 (1978).
Status grad_norm(const Queue& queue, std::span<const ConstView> gradients, ConstView gradient_scale,
                 View norm, View coefficient = {}, View found_inf = {}, const GradNormOptions& options = {});

struct ClipByNormOptions {
  double max_norm = 1;            ///< not negative
  const char* variant = nullptr;  ///< null: chosen by the library; else one of `rooftile list clip_by_norm`
};

/// Scales all gradients in place, so that their norm is at most max_norm.
///
///     g ← g · gradient_scale · min(1, max_norm / (norm + 1e-6))
///
/// gradients, gradient_scale: as grad_norm's. norm: one f32 on the device, as grad_norm gives it for the same
/// gradient_scale, or of the gradients of all ranks together. A NaN or an infinite norm scales as the formula
/// says, by NaN or by 0. Where the factor is 1, nothing is read or written. No workspace.
///
/// Errors: an absent norm, a dtype or shape other than said above, gradients that hold two elements at one
/// address or overlap norm or gradient_scale, an option out of its range. Cost: gradients are read and
/// written; launches as grad_norm's. Source: Pascanu, Mikolov and Bengio, arXiv:1211.5063;
/// torch.nn.utils.clip_grad_norm_.
Status clip_by_norm(const Queue& queue, std::span<const View> gradients, ConstView norm,
                    ConstView gradient_scale = {}, const ClipByNormOptions& options = {});

}  // namespace rooftile
