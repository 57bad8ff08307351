#pragma once
#include "rooftile/core/queue.h"
#include "rooftile/core/view.h"
#include "rooftile/core/workspace.h"

namespace rooftile {

struct BatchNormOptions {
  float eps = 1e-5f;              ///< finite, not negative; inside the root
  float momentum = 0.1f;          ///< 0 to 1: the share that this batch has in the new running statistics
  const char* variant = nullptr;  ///< null: chosen by the library; else one of `rooftile list batch_norm`
};

struct BatchNormInputs {
  ConstView x;                  ///< {N, C, S} or {N, C, …}: f32, f16 or bf16
  ConstView weight = {};        ///< optional: {C}, f32 or x's dtype
  ConstView bias = {};          ///< optional: {C}, the weight's dtype; without a weight f32 or x's dtype
  ConstView running_mean = {};  ///< optional: {C} of f32
  ConstView running_var = {};   ///< optional: {C} of f32
};
struct BatchNormOutputs {
  View y;                      ///< as x; may be x
  View mean = {};              ///< optional: {C} of f32, for the backward
  View rstd = {};              ///< optional: {C} of f32, for the backward
  View new_running_mean = {};  ///< optional: {C} of f32; may be running_mean
  View new_running_var = {};   ///< optional: {C} of f32; may be running_var
};

/// Batch normalisation in training: each channel by the mean and variance of its M = N·S elements,
///   y = (x - mean) · rstd · weight + bias,  mean = Σ x / M,  rstd = 1 / √(Σ (x - mean)² / M + eps),
///   new_running_mean = (1 - momentum) · running_mean + momentum · mean,
///   new_running_var = (1 - momentum) · running_var + momentum · Σ (x - mean)² / (M - 1).
///
/// N, C and S with any strides; {N, C} has S = 1, and dimensions past the third are one with S where one
/// stride covers them, as in NCHW and NHWC. Both are read and written in whole vectors, with the same bits.
/// Sums are taken about an element of their segment, and segments are joined in f64, in their order: a
/// channel of 1000 ± 1, or of one value throughout, is as exact as one around 0. A channel that holds NaN or
/// an infinity gives NaN throughout. M = 0: mean and rstd are NaN, running statistics stay.
///
/// Errors: M = 1, whose variance is 0; an absent view, a dtype or shape other than said above, null or
/// misaligned data, eps or momentum out of range, a new running statistic without the old one, outputs that
/// overlap each other or in part an input; a workspace too small, not aligned to 64 bytes, or not apart from
/// all arguments. Cost: x read twice, y written; 7 flops an element. Source: Ioffe and Szegedy,
/// arXiv:1502.03167.
Status batch_norm(const Queue& queue, const BatchNormInputs& inputs, const BatchNormOutputs& outputs,
                  const BatchNormOptions& options = {}, Workspace workspace = {});
Status batch_norm_workspace(const Queue& queue, const BatchNormInputs& inputs,
                            const BatchNormOutputs& outputs, std::size_t& bytes);

struct BatchNormInferenceInputs {
  ConstView x;                                    ///< as batch_norm's
  ConstView weight = {};                          ///< optional, as batch_norm's
  ConstView bias = {};                            ///< optional, as batch_norm's
  ConstView running_mean = {}, running_var = {};  ///< {C} of f32
};
/// The same by statistics that are known: y = (x - running_mean) / √(running_var + eps) · weight + bias.
/// Cost: x read, y written. `momentum` is not used.
Status batch_norm_inference(const Queue& queue, const BatchNormInferenceInputs& inputs, View y,
                            const BatchNormOptions& options = {}, Workspace workspace = {});
Status batch_norm_inference_workspace(const Queue& queue, const BatchNormInferenceInputs& inputs, View y,
                                      std::size_t& bytes);

struct BatchNormBackwardInputs {
  ConstView x;            ///< the forward's
  ConstView dy;           ///< as x
  ConstView weight = {};  ///< as the forward's; absent if it had none
  ConstView mean = {};    ///< the forward's
  ConstView rstd = {};    ///< the forward's
};
struct BatchNormBackwardOutputs {
  View dx;            ///< as x; may be x or dy
  View dweight = {};  ///< optional: {C}, f32 or the weight's dtype (without a weight: or x's)
  View dbias = {};    ///< optional: {C}, dweight's dtype
};
/// The gradient of batch_norm. With x̂ = (x - mean) · rstd, along a channel:
///   dx = rstd · weight · (dy - Σ dy / M - x̂ · Σ dy·x̂ / M), dweight = Σ dy·x̂, dbias = Σ dy.
/// Cost: x and dy read twice, dx written.
Status batch_norm_backward(const Queue& queue, const BatchNormBackwardInputs& inputs,
                           const BatchNormBackwardOutputs& outputs, const BatchNormOptions& options = {},
                           Workspace workspace = {});
Status batch_norm_backward_workspace(const Queue& queue, const BatchNormBackwardInputs& inputs,
                                     const BatchNormBackwardOutputs& outputs, std::size_t& bytes);

}  // namespace rooftile
