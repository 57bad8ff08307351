#pragma once
#include "rooftile/core/queue.h"
#include "rooftile/core/view.h"

namespace rooftile {

// y = f(gate)·up, element by element. Views of one shape, of any rank and strides (0 broadcasts an input),
// and of one dtype, f32, f16 or bf16, on a CPU f64 too; arithmetic is in f32 and rounded once at the end, of
// f64 in f64. An output may be any input. ±∞ in the gate give the limit of f, a NaN gives a NaN; where dy·up
// overflows, a closed gate's dgate is NaN. No workspace. `variant`: null, chosen by the library; else a name
// that `rooftile list <function>` shows. Source: Shazeer 2020, arXiv:2002.05202.
//
// A tensor that holds gate and up one after the other in its last dimension is two views of it:
// split_halves() makes them.
//
// Errors: an absent view, another dtype, shapes or dtypes that differ, null or misaligned data, outputs that
// hold two elements at one address, overlap each other, or an input in part, an option out of its range, a
// variant that is unknown. Cost: 3n elements moved, the backward 5n.

/// The halves of x along its last dimension; absent, and so refused by every function, where that has an odd
/// size or x has no dimension.
template <class V>
struct Halves {
  V first, last;
};
Halves<ConstView> split_halves(ConstView x);
Halves<View> split_halves(View x);

struct GegluOptions {
  bool tanh = false;  ///< GELU's tanh form
  const char* variant = nullptr;
};
/// y = gelu(gate)·up.
Status geglu(const Queue& queue, ConstView gate, ConstView up, View y, const GegluOptions& options = {});
/// dgate = dy·up·gelu'(gate), dup = dy·gelu(gate).
Status geglu_backward(const Queue& queue, ConstView gate, ConstView up, ConstView dy, View dgate, View dup,
                      const GegluOptions& options = {});

struct SwigluOptions {
  double beta = 1;  ///< finite; of gate·σ(β·gate)
  const char* variant = nullptr;
};
/// y = silu(gate)·up.
Status swiglu(const Queue& queue, ConstView gate, ConstView up, View y, const SwigluOptions& options = {});
/// dgate = dy·up·silu'(gate), dup = dy·silu(gate). β gets no gradient.
Status swiglu_backward(const Queue& queue, ConstView gate, ConstView up, ConstView dy, View dgate, View dup,
                       const SwigluOptions& options = {});

}  // namespace rooftile
