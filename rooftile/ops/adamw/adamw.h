#pragma once
#include <span>

#include "rooftile/core/queue.h"
#include "rooftile/core/view.h"

namespace rooftile {

/// One parameter and what belongs to it, all of one shape: rank 0 to 8, any strides (a view that writes holds
/// no element twice). Memory of different operands lies apart.
struct AdamwTensors {
  View parameter;      ///< f32, f16 or bf16; read and written
  ConstView gradient;  ///< f32, f16 or bf16
  View m, v;           ///< running means of the gradient and of its square: f32, or the parameter's dtype
  View max_v = {};     ///< optional, as v: the largest v so far, by which the step divides (AMSGrad)
  View master = {};    ///< optional, f32: the parameter itself; `parameter` receives it rounded, unread
};

struct AdamwOptions {
  double lr = 1e-3;                   ///< not negative, as eps and weight_decay
  double beta1 = 0.9, beta2 = 0.999;  ///< from 0 to 0.999999
  double eps = 1e-8;                  ///< outside of the root
  double weight_decay = 0.01;
  bool l2 = false;                ///< weight_decay · parameter is added to the gradient: Adam with L2
  bool maximize = false;          ///< climbs
  std::int64_t step = 0;          ///< this step's number, from 1 on; not looked at where `steps` is present
  const char* variant = nullptr;  ///< null: chosen by the library; else one of `rooftile list adamw`
};

/// One step of AdamW, or of Adam with L2, for any number of parameters in one call, in place.
///
///     g = gradient · gradient_scale (-g to maximize; + weight_decay · p with l2)
///     m += (1 - beta1)·(g - m),  v += (1 - beta2)·(g² - v)
///     p -= lr·weight_decay·p (without l2) + lr/(1 - beta1^t) · m / (√(v/(1 - beta2^t)) + eps)
///
/// Arithmetic is in f32 from p (the master, where there is one), m and v before they are rounded to their
/// dtypes; 1 - beta^t is in f64. Tensors of one call may have different shapes, dtypes, masters and max_v.
///
/// steps: one i64, how many steps were done: t is one more, and what it becomes. gradient_scale: one f32, 1
/// over the loss's scale, or a factor that clips. found_inf: one f32; where it is not 0, the call changes
/// nothing, `steps` included. All three are in the device's memory, so a step waits for no transfer; pass {}
/// for what is absent. No workspace.
///
/// Errors: steps absent and step 0, an absent view, a shape or dtype other than said above, outputs that hold
/// two elements at one address or overlap another operand of the same tensor, an option out of its range.
/// Different tensors are not compared: overlapping ones are the caller's fault. Cost: gradient read,
/// parameter, m, v, max_v, master read and written; on a GPU a launch for each 60 contiguous tensors, one for
/// each strided one, and a short one before them. Source: Loshchilov and Hutter, arXiv:1711.05101; Kingma and
/// Ba, arXiv:1412.6980.
Status adamw(const Queue& queue, std::span<const AdamwTensors> tensors, View steps, ConstView gradient_scale,
             ConstView found_inf, const AdamwOptions& options = {});

}  // namespace rooftile
