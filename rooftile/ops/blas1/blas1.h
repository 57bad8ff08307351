#pragma once
#include "rooftile/core/queue.h"
#include "rooftile/core/view.h"

namespace rooftile {

// Vectors here are views of any rank, shape and strides: 0 broadcasts an input, negative strides reverse. All
// operands of a call have one shape and one dtype. `variant`: null, chosen by the library; else a name that
// `rooftile list <function>` shows. None needs a workspace.
//
// A NaN is a NaN: but for copy's, which bits of it come is not promised.
//
// Errors, in each: an absent view, a dtype the function does not take, shapes or dtypes that differ, null or
// misaligned data, an output that holds two elements at one address or overlaps an input in part, a variant
// that is unknown or refuses.

struct CopyOptions {
  const char* variant = nullptr;
};

/// y ← x, every bit as it is (a NaN keeps its payload). Any dtype; u4 needs views without gaps, in row-major
/// order. y may be x. Cost: 2n elements moved, no flops.
Status copy(const Queue& queue, ConstView x, View y, const CopyOptions& options = {});

struct SwapOptions {
  const char* variant = nullptr;
};

/// x ↔ y, f64 f32 f16 bf16, exactly. Both are outputs: views that share an element are refused, equal ones,
/// too. Cost: 4n elements moved, no flops.
Status swap(const Queue& queue, View x, View y, const SwapOptions& options = {});

struct ScalOptions {
  const char* variant = nullptr;
};

/// y ← α·x, f64 f32 f16 bf16; halves are multiplied in f32 and rounded once. For all but f64, α is rounded to
/// f32 first. y may be x.
///
/// α = 0 multiplies as any other factor does: it makes a NaN of a NaN or an infinity (for zeros whatever x
/// holds: axpby with both factors 0). Cost: 2n elements moved, n flops.
Status scal(const Queue& queue, double alpha, ConstView x, View y, const ScalOptions& options = {});

struct AddOptions {
  const char* variant = nullptr;
};

/// z ← x + y, f64 f32 f16 bf16; halves are added in f32 and rounded once. z may be x or y.
/// Cost: 3n elements moved, n flops.
Status add(const Queue& queue, ConstView x, ConstView y, View z, const AddOptions& options = {});

struct AxpbyOptions {
  const char* variant = nullptr;
};

/// y ← α·x + β·y, f64 f32 f16 bf16, computed as fma(α, x, β·y) in f64 or f32; there α and β are rounded to
/// f32 first.
///
/// As in BLAS, a factor of 0, or that rounds to 0, means that its operand is not read: β = 0 gives α·x
/// whatever y holds, α = 0 gives β·y whatever x holds (so no NaN comes from either), both 0 give +0. x may be
/// y. Cost: 3n elements moved, 3n flops; 2n and n where one factor is 0.
Status axpby(const Queue& queue, double alpha, ConstView x, double beta, View y,
             const AxpbyOptions& options = {});

struct DotOptions {
  const char* variant = nullptr;
};

/// result ← Σ x_i·y_i, f64 f32 f16 bf16. `result`: one element, any rank; f64, f32 or x's dtype (f64 data:
/// f64), apart from x and y. No elements: 0.
///
/// The elements in row-major order are cut into chunks of 16384; each is summed in f32 (f64 data: f64) by
/// lanes, with fused multiply-adds; the chunks' sums are added pairwise in index order in f64. So the result
/// has the same bits for any strides, alignment and thread count, and the error does not grow with n: 2^31
/// ones give 2^31. Cost: 2n elements moved, 2n flops.
Status dot(const Queue& queue, ConstView x, ConstView y, View result, const DotOptions& options = {});

struct Nrm2Options {
  const char* variant = nullptr;
};

/// result ← √Σ x_i², f64 f32 f16 bf16. `result` and the order of additions as in dot.
///
/// Nothing overflows or underflows on the way: of finite elements the norm is right to a few units in the
/// last place wherever `result` can hold it, and so is that of subnormal ones. Of an infinity it is +∞, of a
/// NaN a NaN. A chunk whose squares leave the range of its sums is read twice. Cost: n elements moved, 2n + 1
/// flops.
Status nrm2(const Queue& queue, ConstView x, View result, const Nrm2Options& options = {});

struct AsumOptions {
  const char* variant = nullptr;
};

/// result ← Σ |x_i|, f64 f32 f16 bf16. `result`, the order and the width of additions as in dot.
/// Cost: n elements moved, 2n flops.
Status asum(const Queue& queue, ConstView x, View result, const AsumOptions& options = {});

}  // namespace rooftile
