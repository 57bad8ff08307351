#pragma once
#include <span>

#include "rooftile/core/queue.h"
#include "rooftile/core/view.h"

namespace rooftile {

/// A parameter and its running average, of one shape: rank 0 to 8, any strides (a view that writes holds no
/// element twice). Their memory lies apart.
struct EmaTensors {
  View average;         ///< f32, f16 or bf16; read and written
  ConstView parameter;  ///< f32, f16 or bf16
};

struct EmaOptions {
  double decay = 0.999;           ///< from 0 to 1
  const char* variant = nullptr;  ///< null: chosen by the library; else one of `rooftile list ema`
};

/// Moves the averages of any number of parameters in one call, in place: an exponential moving average.
///
///     average += (1 - decay) · (parameter - average)
///
/// Arithmetic is in f32; 1 - decay is computed in f64. Pairs of one call may have different shapes and
/// dtypes: an f32 average of bf16 parameters moves by less than bf16 can show. No workspace.
///
/// Errors: an absent view, a shape or dtype other than said above, an average that holds two elements at one
/// address or overlaps its parameter, an option out of its range. Different pairs are not compared:
/// overlapping ones are the caller's fault. Cost: parameter read, average read and written; on a GPU a
/// launch for each 120 contiguous pairs, one for each strided one, and a short one before them. Source:
/// Polyak and Juditsky, SIAM J. Control Optim. 30 (1992); torch.optim.swa_utils.
Status ema(const Queue& queue, std::span<const EmaTensors> tensors, const EmaOptions& options = {});

}  // namespace rooftile
