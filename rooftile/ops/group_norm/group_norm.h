#pragma once
#include "rooftile/core/queue.h"
#include "rooftile/core/view.h"
#include "rooftile/core/workspace.h"

namespace rooftile {

struct GroupNormOptions {
  std::int64_t groups = 1;        ///< divides C; C: instance normalisation
  float eps = 1e-5f;              ///< finite, not negative; inside the root
  const char* variant = nullptr;  ///< null: chosen by the library; else one of `rooftile list group_norm`
};

struct GroupNormInputs {
  ConstView x;            ///< {N, C, S} or {N, C, …}: f32, f16 or bf16
  ConstView weight = {};  ///< optional: {C}, f32 or x's dtype
  ConstView bias = {};    ///< optional: {C}, the weight's dtype; without a weight f32 or x's dtype
};
struct GroupNormOutputs {
  View y;          ///< as x; may be x
  View mean = {};  ///< optional: {N, groups} of f32, for the backward
  View rstd = {};  ///< optional: {N, groups} of f32, for the backward
};

/// Group normalisation: the C / groups neighbouring channels of a sample's group, M = C / groups · S
/// elements,
///   y = (x - mean) · rstd · weight + bias,  mean = Σ x / M,  rstd = 1 / √(Σ (x - mean)² / M + eps).
///
/// Shapes, strides, precision, workspace and errors as batch_norm's; besides, groups must divide C. M = 1
/// gives the bias; M = 0: mean and rstd are NaN. A group that holds NaN or an infinity gives NaN throughout.
/// Cost: x read twice, y written; 7 flops an element. Source: Wu and He, arXiv:1803.08494.
Status group_norm(const Queue& queue, const GroupNormInputs& inputs, const GroupNormOutputs& outputs,
                  const GroupNormOptions& options = {}, Workspace workspace = {});
Status group_norm_workspace(const Queue& queue, const GroupNormInputs& inputs,
                            const GroupNormOutputs& outputs, const GroupNormOptions& options,
                            std::size_t& bytes);

struct GroupNormBackwardInputs {
  ConstView x;            ///< the forward's
  ConstView dy;           ///< as x
  ConstView weight = {};  ///< as the forward's; absent if it had none
  ConstView mean = {};    ///< the forward's
  ConstView rstd = {};    ///< the forward's
};
struct GroupNormBackwardOutputs {
  View dx;            ///< as x; may be x or dy
  View dweight = {};  ///< optional: {C}, f32 or the weight's dtype (without a weight: or x's)
  View dbias = {};    ///< optional: {C}, dweight's dtype
};
/// The gradient of group_norm. With x̂ = (x - mean) · rstd and g = dy · weight, along a group:
///   dx = rstd · (g - Σ g / M - x̂ · Σ g·x̂ / M); over samples and planes dweight = Σ dy·x̂, dbias = Σ dy.
/// Cost: x and dy read twice, dx written.
Status group_norm_backward(const Queue& queue, const GroupNormBackwardInputs& inputs,
                           const GroupNormBackwardOutputs& outputs, const GroupNormOptions& options = {},
                           Workspace workspace = {});
Status group_norm_backward_workspace(const Queue& queue, const GroupNormBackwardInputs& inputs,
                                     const GroupNormBackwardOutputs& outputs, const GroupNormOptions& options,
                                     std::size_t& bytes);

}  // namespace rooftile
