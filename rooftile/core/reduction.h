#pragma once
// Functions that reduce whole tensors to one number and have a signature: their problem, and how it is made.
#include "rooftile/core/rows.h"
#include "rooftile/core/signature.h"

namespace rooftile {

/// What passes to the launches: inputs of one shape and dtype, and one element of f64, f32 or their dtype.
template <int kInputs>
struct ReductionProblem {
  Rows<kInputs> rows;  ///< by row_major_of
  const void* data[kInputs];
  void* result;
  DType dtype;
  DType result_dtype;

  constexpr std::int64_t size() const { return rows.rows * rows.columns; }
  /// Whether an input's elements are contiguous, in row-major order.
  bool contiguous(int input) const {
    std::int64_t expected = rows.columns;
    for (int d = rows.rank - 1; d >= 0; --d) {
      if (rows.stride[input][d] != expected) return false;
      expected *= rows.extent[d];
    }
    return rows.column_stride[input] == 1;
  }
};

namespace detail {
template <int kInputs>
Status launch_reduction(const Queue& queue, const Op& op, const Call& call) {
  const ConstView &x = call.view(0), &result = call.view(kInputs);
  if (x.dtype == DType::f64 && result.dtype != DType::f64)
    return Status::error("%s: result is %s, must be f64 where x is", op.function, name(result.dtype));
  const ConstView* views[kInputs];
  std::copy_n(call.views, kInputs, views);
  ReductionProblem<kInputs> problem{row_major_of(views), {}, call.output(kInputs), x.dtype, result.dtype};
  for (int i = 0; i < kInputs; ++i) problem.data[i] = views[i]->data;
  return dispatch(queue, op, &problem, call.variant);
}

inline Status reduces_all(const void*) { return {}; }
inline constexpr Variant kReductionVariants[] = {
    {"tile", "every dtype and stride: chunks of 16384 on all threads, joined pairwise", Role::standard,
     reduces_all},
};
}  // namespace detail

/// The op of a signature whose inputs have the shape "..." and one dtype; then comes the result, "1".
template <const Signature& kSignature>
constexpr Op reduction_op(std::span<const Variant> variants = detail::kReductionVariants) {
  return {kSignature.function, "forward",
          kSignature.function, variants,
          kSignature,          &detail::launch_reduction<kSignature.operand_count() - 1>};
}

}  // namespace rooftile
