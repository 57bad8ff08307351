#pragma once
// y = x·Wᵀ + bias, W in codes of 4 bits: what gemm_nf4 and gemm_int4 share. No CUDA: nf4.cpp and int4.cpp
// validate by it. A weight is a struct with
//   kFunction, kPacked    the function's name, and that of the operand which holds the codes
//   dequantise(queue, call, to)   W in memory: the folder's own function, on a call's operands
//   n, k                  W {N, K}
//   runs                  a GPU's launch sets it: in_runs(16)
//   in_runs(bytes)        whether kCodesRun weights of a row, from a multiple of that on, are 16 bytes that
//                         are aligned to `bytes`, and share what turns them into values
//   shared_log()          log2 of the runs, at most 2^kSharedRunsLog and from a multiple of that on, which
//   share it line(row)             what is computed once for a row group_of(k)           what scales are
//   found by, with a line code(line, k)         the byte with the code of (row, k); high(line, k): whether it
//   is in the upper half shift(element)        how far an element of a word of eight is shifted; bytes in
//   memory's order
#include <algorithm>

#include "rooftile/core/check.h"
#include "rooftile/core/op.h"
#include "rooftile/core/signature.h"
#include "rooftile/ops/gemm/gemm.h"
#include "rooftile/ops/gemm/gemm.operand.h"
#include "rooftile/ops/gemm/gemm.rows.h"

namespace rooftile {

inline constexpr int kCodesRun = 32, kMaxFewRows = 64, kSharedRunsLog = 4;

/// gemm's product, whose b is not in memory: b[k, n] is weight (n, k).
template <class W>
struct GemmCodes {
  GemmProblem product;
  W w;
  const Call* call = nullptr;
  bool many_rows = false;  ///< W is dequantised once, into the call's workspace
};

/// Elements from a row of the dequantised W to the next: rows begin at multiples of 64 bytes.
inline std::int64_t dequantised_pitch(std::int64_t k) { return (k + 31) / 32 * 32; }
/// The bytes of W in x's dtype, for a GPU's tensor cores and as many rows of x as make a product
/// compute-bound; else 0.
inline std::size_t dequantised_bytes(const Queue& queue, const ConstView& x, const ConstView& y) {
  std::int64_t rows = 1;
  for (int d = 0; d + 1 < x.rank; ++d) rows *= x.shape[d];
  if (queue.device() == Device::cpu || x.dtype == DType::f32 || rows <= kMaxFewRows) return 0;
  const std::int64_t row = dequantised_pitch(x.shape[x.rank - 1]) * (bits(x.dtype) / 8);
  std::size_t bytes = 0;
  if (__builtin_mul_overflow(static_cast<std::size_t>(y.shape[y.rank - 1]), static_cast<std::size_t>(row),
                             &bytes))
    bytes = SIZE_MAX;  // which no caller has
  return bytes;
}

namespace codes {

template <class W>
Status any(const GemmCodes<W>&) {
  return {};
}
/// On a GPU f32 is multiplied without tensor cores, f16 and bf16 with them.
template <class W>
Status tensor_cores(const GemmCodes<W>& p) {
  if (p.product.type != DType::f32) return {};
  return Status::error("%s: tensor cores take f16 and bf16, x is f32, which simt takes", W::kFunction);
}
/// What one warp's tile has rows for, and whole 16-byte vectors of x and W.
template <class W>
Status few_rows(const GemmCodes<W>& p) {
  ROOFTILE_TRY(tensor_cores(p));
  const GemmProblem& product = p.product;
  if (product.batch.rows > 1 || product.m > kMaxFewRows)
    return Status::error(
        "%s: few_rows takes up to %d rows of x that one stride covers, x has %lld times %lld; mma takes all",
        W::kFunction, kMaxFewRows, static_cast<long long>(product.batch.rows),
        static_cast<long long>(product.m));
  const gemm_gpu::GpuOperand x = gemm_gpu::a_of(product, 2);
  constexpr std::int64_t kMax = std::int64_t{0x7fffffff};
  if (product.k > 0 && product.n < kMax && p.w.in_runs(16) && x.k_first && x.piece == 16) return {};
  return Status::error(
      "%s: few_rows takes %s, x and %s aligned to 16 bytes; K is %lld, x's strides are %lld and %lld, it is "
      "at "
      "%p, %s at %p; mma takes all",
      W::kFunction, W::kRuns, W::kPacked, static_cast<long long>(product.k),
      static_cast<long long>(product.a_row), static_cast<long long>(product.a_column), product.a, W::kPacked,
      static_cast<const void*>(p.w.packed));
}
template <class W>
Status simt(const GemmCodes<W>& p) {
  if (p.product.type == DType::f32) return {};
  return Status::error("%s: simt takes f32, x is %s, which tensor cores take: mma", W::kFunction,
                       name(p.product.type));
}

template <class W>
Status many_rows(const GemmCodes<W>& p) {
  if (p.many_rows) return {};
  return Status::error("%s: dequantised takes f16 and bf16 and more than %d rows of x, on a GPU",
                       W::kFunction, kMaxFewRows);
}
/// W dequantised once, then gemm.
template <class W>
Status by_gemm(const Queue& queue, const GemmCodes<W>& p) {
  const GemmProblem& product = p.product;
  const auto& batch = product.batch;
  /// A matrix of each batch. `which` of the batch's strides are its; -1: all share one.
  const auto matrices = [&](const void* data, DType dtype, int which, std::int64_t rows, std::int64_t columns,
                            std::int64_t row, std::int64_t column) {
    Extent shape[kMaxRank], stride[kMaxRank];
    for (int d = 0; d < batch.rank; ++d)
      shape[d] = batch.extent[d], stride[d] = which < 0 ? 0 : batch.stride[which][d];
    shape[batch.rank] = rows, stride[batch.rank] = row;
    shape[batch.rank + 1] = columns, stride[batch.rank + 1] = column;
    return detail::make_view<View>(data, dtype, batch.rank + 2, shape, stride);
  };
  void* const memory = p.call->workspace.pointer;
  const std::int64_t n = product.n, k = product.k, pitch = dequantised_pitch(k);
  const Extent shape[] = {n, k}, stride[] = {pitch, 1}, bias_stride[] = {product.bias_stride};
  ROOFTILE_TRY(
      W::dequantise(queue, *p.call, detail::make_view<View>(memory, product.type, 2, shape, stride)));
  ConstView bias{};
  if (product.bias)
    bias = detail::make_view<ConstView>(product.bias, product.bias_type, 1, shape, bias_stride);
  return gemm(queue,
              {matrices(product.a, product.type, 1, product.m, k, product.a_row, product.a_column),
               matrices(memory, product.type, -1, k, n, 1, pitch),
               {},
               bias},
              matrices(product.y, product.out, 0, product.m, n, product.y_row, product.y_column));
}

}  // namespace codes

template <class W>
inline constexpr Variant kCodesVariants[] = {
    {"tile", "gemm's micro-kernel; strips of weights dequantised in registers into its order", Role::standard,
     accepts<codes::any<W>>},
    {"few_rows", "tensor cores; each warp dequantises in registers what its fragments take", Role::standard,
     accepts<codes::few_rows<W>>},
    {"dequantised", "weights dequantised into the workspace, once, then gemm", Role::standard,
     accepts<codes::many_rows<W>>, composes<codes::by_gemm<W>>},
    {"mma", "gemm's tensor cores; weights dequantised in registers on their way to shared memory",
     Role::standard, accepts<codes::tensor_cores<W>>},
    {"simt", "gemm's register tile; weights dequantised on their way to shared memory", Role::standard,
     accepts<codes::simt<W>>}};

}  // namespace rooftile
