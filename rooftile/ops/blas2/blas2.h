#pragma once
#include "rooftile/core/queue.h"
#include "rooftile/core/view.h"

namespace rooftile {

// A matrix and vectors, f64 f32 f16 bf16, any strides: exchange a view's two dimensions for its transpose.
// All operands of a call have one dtype. Arithmetic is in f64 for f64, else in f32, to which alpha and beta
// are rounded first. They multiply as any number does, 0 too. No workspace. `variant`: null, chosen by the
// library; else a name that `rooftile list <function>` shows.
//
// Errors, in each: an absent operand, a dtype the function does not take, shapes or dtypes that differ, null
// or misaligned data, an output that holds two elements at one address or overlaps an input (but c itself), a
// variant that is unknown or refuses.

struct GemvInputs {
  ConstView a;    ///< {M, N}
  ConstView x;    ///< {N}
  ConstView c{};  ///< optional: {M}; needed where beta is not 0
};
struct GemvOptions {
  double alpha = 1, beta = 0;  ///< any numbers
  const char* variant = nullptr;
};

/// y = alpha·A·x + beta·c. y: {M}, may be c (same address and stride), which is BLAS's y ← αAx + βy.
///
/// M and N from 0 up; N = 0 leaves beta·c. As in BLAS, beta = 0, or one that rounds to 0, means that c is not
/// read, whatever it holds. Each row is cut into chunks at fixed columns (a CPU's 16384, a GPU's 1024), a
/// chunk is added up by lanes, and the chunks' sums are joined in f64 in an order that follows from N alone.
/// Then fma(alpha, sum, beta·c), rounded once. So y_i has the same bits for any strides, any other rows, and
/// any number of threads. Cost: 2·M·N flops; A is read once.
Status gemv(const Queue& queue, const GemvInputs& inputs, View y, const GemvOptions& options = {});

struct GemvBackwardInputs {
  ConstView a;   ///< {M, N}
  ConstView x;   ///< {N}; read where da is there
  ConstView dy;  ///< {M}
};
struct GemvGradients {
  View da{};  ///< optional: {M, N}
  View dx;    ///< {N}
  View dc{};  ///< optional: {M}
};
/// The gradients: da = alpha·dy·xᵀ, dx = alpha·Aᵀ·dy, dc = beta·dy; da and dc are computed where they are
/// there. Each is geru or gemv, with their order of additions.
Status gemv_backward(const Queue& queue, const GemvBackwardInputs& inputs, const GemvGradients& gradients,
                     const GemvOptions& options = {});

struct GeruInputs {
  ConstView x;    ///< {M}
  ConstView y;    ///< {N}
  ConstView c{};  ///< optional: {M, N}
};
struct GeruOptions {
  double alpha = 1;  ///< any number
  const char* variant = nullptr;
};

/// A = alpha·x·yᵀ + c, or without c the outer product alone. a: {M, N}, may be c (same address and strides),
/// which is BLAS's A ← A + αxyᵀ.
///
/// Each element is fma(alpha, x_i·y_j, c_ij), or without c the product of the three. x has an element for
/// each row of A, y for each column, also where both have one length. Cost: 3·M·N flops; c is read once, A
/// written once.
Status geru(const Queue& queue, const GeruInputs& inputs, View a, const GeruOptions& options = {});

struct GeruBackwardInputs {
  ConstView x;   ///< {M}; read where dy is there
  ConstView y;   ///< {N}
  ConstView da;  ///< {M, N}
};
struct GeruGradients {
  View dx;    ///< {M}
  View dy{};  ///< optional: {N}
  View dc{};  ///< optional: {M, N}
};
/// The gradients: dx = alpha·dA·y, dy = alpha·dAᵀ·x, dc = dA; dy and dc are computed where they are there.
Status geru_backward(const Queue& queue, const GeruBackwardInputs& inputs, const GeruGradients& gradients,
                     const GeruOptions& options = {});

}  // namespace rooftile
