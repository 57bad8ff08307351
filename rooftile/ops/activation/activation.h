#pragma once
#include "rooftile/core/queue.h"
#include "rooftile/core/view.h"

namespace rooftile {

// Each takes views of one shape, of any rank and strides (0 broadcasts an input), and of one dtype, f32, f16
// or bf16, on a CPU f64 too; arithmetic is in f32 and rounded once at the end, of f64 in f64. The output may
// be an input. ±∞ give the limits, a NaN gives a NaN. No workspace. `variant`: null, chosen by the library;
// else a name that `rooftile list <function>` shows.
//
// Errors: an absent view, another dtype, shapes or dtypes that differ, null or misaligned data, an output
// that holds two elements at one address or overlaps an input in part, an option out of its range, a variant
// that is unknown. Cost: 2n elements moved, the backward 3n.

struct ActivationOptions {
  const char* variant = nullptr;
};

/// y = max(x, 0).
Status relu(const Queue& queue, ConstView x, View y, const ActivationOptions& options = {});
/// dx = dy where x > 0 or is NaN, else 0; y may stand for x.
Status relu_backward(const Queue& queue, ConstView x, ConstView dy, View dx,
                     const ActivationOptions& options = {});

/// y = 1/(1 + e^-x).
Status sigmoid(const Queue& queue, ConstView x, View y, const ActivationOptions& options = {});
/// dx = dy·y·(1 - y), from the output y.
Status sigmoid_backward(const Queue& queue, ConstView y, ConstView dy, View dx,
                        const ActivationOptions& options = {});

/// y = tanh x.
Status tanh(const Queue& queue, ConstView x, View y, const ActivationOptions& options = {});
/// dx = dy·(1 - y²), from the output y.
Status tanh_backward(const Queue& queue, ConstView y, ConstView dy, View dx,
                     const ActivationOptions& options = {});

struct SiluOptions {
  double beta = 1;  ///< finite; 1: SiLU, otherwise Swish
  const char* variant = nullptr;
};

/// y = x·σ(βx). Source: Elfwing et al. 2017, arXiv:1702.03118; Swish: arXiv:1710.05941.
Status silu(const Queue& queue, ConstView x, View y, const SiluOptions& options = {});
/// dx = dy·(σ(βx) + βx·σ(βx)·(1 - σ(βx))). β gets no gradient.
Status silu_backward(const Queue& queue, ConstView x, ConstView dy, View dx, const SiluOptions& options = {});

struct GeluOptions {
  bool tanh = false;  ///< the tanh form: x·σ(2·√(2/π)·(x + 0.044715·x³))
  const char* variant = nullptr;
};

/// y = x·Φ(x), Φ being the normal distribution function. Source: Hendrycks and Gimpel, arXiv:1606.08415.
Status gelu(const Queue& queue, ConstView x, View y, const GeluOptions& options = {});
/// dx = dy·(Φ(x) + x·φ(x)), or the derivative of the tanh form.
Status gelu_backward(const Queue& queue, ConstView x, ConstView dy, View dx, const GeluOptions& options = {});

}  // namespace rooftile
