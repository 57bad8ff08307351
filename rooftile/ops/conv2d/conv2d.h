#pragma once
#include <cstddef>
#include <cstdint>

#include "rooftile/core/queue.h"
#include "rooftile/core/view.h"
#include "rooftile/core/workspace.h"
#include "rooftile/ops/gemm/gemm.h"

namespace rooftile {

struct Conv2dInputs {
  ConstView x;          ///< {N, C, H, W}: f32, f16 or bf16
  ConstView w;          ///< {K, C/groups, R, S}, x's dtype
  ConstView bias = {};  ///< optional: {K}, x's dtype or f32
};

struct Conv2dOptions {
  std::int64_t stride_h = 1, stride_w = 1;      ///< pixels from one window to the next, 1 to 1024
  std::int64_t padding_h = 0, padding_w = 0;    ///< zeros around the picture, on each side, 0 to 1024
  std::int64_t dilation_h = 1, dilation_w = 1;  ///< pixels from one tap to the next, 1 to 1024
  std::int64_t groups = 1;                      ///< divides C and K; C: depthwise
  GemmActivation activation = GemmActivation::none;
  const char* variant = nullptr;  ///< null: chosen by the library; else one of `rooftile list conv2d`
};

/// y[n, k, p, q] = activation(bias[k] + Σ w[k, c, r, s] · x[n, c, p·stride - padding + r·dilation, …]), over
/// r, s and the channels c of k's group; x is 0 outside the picture. (A cross-correlation, as everywhere in
/// deep learning: the filter is not flipped.) y: {N, K, P, Q}, x's dtype, with
/// P = (H + 2·padding - dilation·(R - 1) - 1)/stride + 1, rounded down, and Q likewise.
///
/// Every operand has any strides. So the layout is no option: NHWC is a permuted view of {N, C, H, W}.
/// Kernels look at which stride is 1. R and S are at least 1, and the filter must fit the padded picture. N,
/// C and K may be 0; C = 0 leaves activation(bias).
///
/// Arithmetic: sums in f32, for each element one chain over ascending (r, s, c), then the bias, the
/// activation, and one rounding. So a picture's result depends on that picture and the options alone, never
/// on N, strides or threads. What lies outside the picture is multiplied as 0: a filter's infinity or NaN
/// makes NaN there, as in a padded picture.
///
/// Workspace: conv2d_workspace(…) bytes; 0 on a CPU. There a GPU copies channels that lie apart (NCHW) next
/// to each other, where they are whole 16-byte vectors. Errors: an absent x, w or y, shapes or dtypes that do
/// not fit, groups that do not divide C or K, a filter larger than the padded picture, an option out of
/// range, an output that overlaps itself or an input, a workspace that is too small, a variant that is
/// unknown or refuses. Cost: 2·N·K·P·Q·R·S·C/groups flops; x, w and y moved once at least. Source: Chetlur et
/// al., cuDNN: efficient primitives for deep learning (2014).
Status conv2d(const Queue& queue, const Conv2dInputs& inputs, View y, const Conv2dOptions& options = {},
              Workspace workspace = {});
Status conv2d_workspace(const Queue& queue, const Conv2dInputs& inputs, View y, const Conv2dOptions& options,
                        std::size_t& bytes);

struct Conv2dBackwardInputs {
  ConstView x, w;  ///< the forward's
  ConstView dy;    ///< {N, K, P, Q}, x's dtype
};
struct Conv2dGradients {
  View dx;          ///< {N, C, H, W}, x's dtype
  View dw = {};     ///< optional: {K, C/groups, R, S}, x's dtype or f32
  View dbias = {};  ///< optional: {K}, x's dtype or f32
};

/// The gradients: dx[n, c, h, w] = Σ w[k, c, r, s] · dy[n, k, p, q] over the windows that
/// see the pixel, in ascending (r, s, k); dw[k, c, r, s] = Σ dy[n, k, p, q] · x[n, c, …] over ascending
/// (n, p, q), and dbias[k] the sum of dy alone. Each is gathered: no atomics, the same bits each time. On a
/// GPU the sums over (n, p, q) are cut in parts whose number follows from the sizes; their sums, in the
/// workspace, are added in order.
///
/// Options: the forward's, without an activation (its gradient is the caller's: multiply dy first).
/// Workspace: conv2d_backward_workspace(…) bytes; 0 on a CPU. Errors: as the forward's; a workspace that is
/// too small. Cost: the forward's flops for dw, and stride_h·stride_w times as many for dx.
Status conv2d_backward(const Queue& queue, const Conv2dBackwardInputs& inputs,
                       const Conv2dGradients& gradients, const Conv2dOptions& options = {},
                       Workspace workspace = {});
Status conv2d_backward_workspace(const Queue& queue, const Conv2dBackwardInputs& inputs,
                                 const Conv2dGradients& gradients, const Conv2dOptions& options,
                                 std::size_t& bytes);

}  // namespace rooftile
