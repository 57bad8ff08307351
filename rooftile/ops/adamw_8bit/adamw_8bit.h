#pragma once
#include <span>

#include "rooftile/core/queue.h"
#include "rooftile/core/view.h"

namespace rooftile {

/// One parameter and what belongs to it. parameter, gradient, m, v and master have one shape: rank 0 to 8,
/// any strides (a view that writes holds no element twice). Memory of different operands lies apart.
struct Adamw8bitTensors {
  View parameter;           ///< f32, f16 or bf16; read and written
  ConstView gradient;       ///< f32, f16 or bf16
  View m, v;                ///< u8: codes of the running means of the gradient and of its square
  View m_absmax, v_absmax;  ///< f32, one for each 256 elements in row-major order, the last for the rest
  View master = {};         ///< optional, f32: the parameter itself; `parameter` receives it rounded, unread
};

struct Adamw8bitOptions {
  double lr = 1e-3;                   ///< not negative, as eps and weight_decay
  double beta1 = 0.9, beta2 = 0.999;  ///< from 0 to 0.999999
  double eps = 1e-8;                  ///< outside of the root
  double weight_decay = 0.01;
  bool maximize = false;          ///< climbs
  std::int64_t step = 0;          ///< this step's number, from 1 on; not looked at where `steps` is present
  const char* variant = nullptr;  ///< null: chosen by the library; else one of `rooftile list adamw_8bit`
};

/// One step of AdamW whose means take 8 bits each, for any number of parameters in one call, in place.
///
///     m, v = map[code] · absmax of the block of 256
///     one step of adamw on p, m and v in f32, m and v not rounded
///     absmax = the block's largest |m|, |v|;  code = the number of the map that is nearest to m / absmax
///
/// The maps hold 256 numbers: seven decades down to 1e-7, each with twice the steps of the one below; 0; and
/// 1. m's has both signs, with 1, 2, … 64 steps in a decade; v's has 2, 4, … 128. Before the first step codes
/// may be anything, and absmax is 0. A negative m never gets the code of 0, so that no sign is lost. steps,
/// gradient_scale, found_inf and options are adamw's. Where g is infinite or NaN, or g² leaves f32, the
/// element's m and v become 0, and its p stays. Each operation is rounded as IEEE says and none is fused, so
/// all machines give the same bits. No workspace.
///
/// Errors: steps absent and step 0, an absent view, a shape or dtype other than said above, outputs that hold
/// two elements at one address or overlap another operand of the same tensor, an option out of its range.
/// Different tensors are not compared: overlapping ones are the caller's fault. Cost: gradient read, all
/// else read and written: f32 16.06 bytes per element, adamw 28; on a GPU a launch for each 53 contiguous
/// tensors, one for each strided one, and a short one before them.
///
/// Source: Dettmers, Lewis, Shleifer and Zettlemoyer, arXiv:2110.02861; bitsandbytes' create_dynamic_map and
/// kOptimizerStatic8bit2StateBlockwise. That one divides and takes powers approximately, makes the step
/// before the decay, p · (1 - lr·weight_decay), and has no master; its maps differ in last bits with the
/// machine that made them, and a mean in the middle of two numbers goes to either. Here it goes to the lower.
Status adamw_8bit(const Queue& queue, std::span<const Adamw8bitTensors> tensors, View steps,
                  ConstView gradient_scale, ConstView found_inf, const Adamw8bitOptions& options = {});

}  // namespace rooftile
