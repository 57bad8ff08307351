#pragma once
#include "rooftile/core/queue.h"
#include "rooftile/core/view.h"
#include "rooftile/core/workspace.h"

namespace rooftile {

/// What is done with alpha·A·B + bias, element by element: the functions of activation.h.
enum class GemmActivation { none, relu, gelu, gelu_tanh, silu, sigmoid, tanh };

struct GemmInputs {
  ConstView a;          ///< {…, M, K}: f64, f32, tf32, f16, bf16 or i8
  ConstView b;          ///< {…, K, N}, a's dtype
  ConstView c = {};     ///< {…, M, N}, y's dtype; needed by beta and by gate
  ConstView bias = {};  ///< optional: {N}, y's dtype or f32
};

struct GemmOptions {
  double alpha = 1, beta = 0;  ///< any numbers; rounded to f32 but for f64
  GemmActivation activation = GemmActivation::none;
  bool gate = false;  ///< c is a factor: y = activation(…)·c; beta must be 0
  const char* variant =
      nullptr;  ///< null: chosen by the library; else a name that `rooftile list gemm` shows
};

/// y = activation(alpha·A·B + bias) + beta·c, or …·c, over the last two dimensions; those before them are a
/// batch. With c = X·U, `gate` and silu make SwiGLU the product's end: silu(X·G)·c, in no pass of its own.
///
/// M, N, K from 0 up: K = 0 leaves activation(bias) + beta·c. Every operand has any strides: exchange the
/// last two of a view for Aᵀ or Bᵀ, give the batch a stride of 0 to use one matrix throughout. y is of a's
/// dtype, or f32 where that is f16, bf16 or tf32, and i32 where it is i8; it may be c (same address and
/// strides). As in BLAS, beta = 0 means that c is not read, whatever it holds. alpha = 0 multiplies as any
/// other number does.
///
/// Arithmetic: products are accumulated in f64 of f64, in i32 of i8 (modulo 2^32; exact up to K = 131071), in
/// f32 of all else: for each element one chain of fused multiply-adds over ascending K, from 0, whatever M,
/// N, strides, threads and tiles are. Then fma(alpha, sum, bias), the activation, and fma(beta, c, ·) or
/// a product with c, rounded to y's dtype once. So a row of y depends on its row of A alone, and never on the
/// batch around it. Of tf32 the upper 19 bits are read, as matrix instructions do.
///
/// No workspace. Errors: an absent a, b or y, shapes or dtypes that do not fit, beta or gate without c, both
/// of them, i8 with alpha, beta, gate or an activation, f64 with another activation than relu, an output that
/// overlaps itself, a, b, bias, or c in part, a variant that is unknown or refuses. Cost: 2·M·N·K flops; M·K
/// + K·N + M·N elements, and M·N more of c. Source: Dongarra et al., A set of level 3 BLAS (1990); Goto and
/// van de Geijn, Anatomy of high-performance matrix multiplication (2008).
Status gemm(const Queue& queue, const GemmInputs& inputs, View y, const GemmOptions& options = {},
            Workspace workspace = {});

/// Elements of packed before b's.
inline constexpr std::int64_t kGemmPackedHeader = 64;
/// Elements of b's dtype that a packed b of k rows and n columns takes: bytes = that · bits(dtype) / 8.
constexpr std::int64_t gemm_packed_size(std::int64_t k, std::int64_t n) { return kGemmPackedHeader + k * n; }

struct GemmPackOptions {
  const char* variant = nullptr;  ///< as gemm's
};

/// Copies b in the order in which a CPU's gemm multiplies it: for a matrix that many products share, a
/// layer's weight. Every bit is copied as it is.
///
/// b: {K, N}, any strides: of a Linear's weight {N, K} the transpose. packed: {K·N + 64}, b's dtype, apart
/// from b; fast where it is contiguous, aligned to 64 bytes. It begins with a header of 64 whole numbers;
/// then come strips of 32 columns (the last of what is left), row after row. It is the same on every CPU and
/// instruction set, so it may be kept in a file. No workspace.
///
/// Errors: an absent view, another size or dtype, an output that overlaps itself or b; a queue of a GPU,
/// whose gemm reads b as it is. Cost: 2·K·N elements moved.
Status gemm_pack(const Queue& queue, ConstView b, View packed, const GemmPackOptions& options = {});

struct GemmPackedInputs {
  ConstView a;          ///< {…, M, K}: as gemm's
  ConstView packed;     ///< {K·N + 64}, a's dtype: what gemm_pack wrote
  ConstView c = {};     ///< {…, M, N}: as gemm's
  ConstView bias = {};  ///< optional: {N}, as gemm's
};

/// gemm with a packed b, which all matrices of a batch share: the same bits, without packing b in each call.
/// Errors: gemm's; packed that gemm_pack did not write, or of a b of another shape or dtype; a
/// queue of a GPU. All else is as of gemm.
Status gemm_packed(const Queue& queue, const GemmPackedInputs& inputs, View y,
                   const GemmOptions& options = {}, Workspace workspace = {});

}  // namespace rooftile
