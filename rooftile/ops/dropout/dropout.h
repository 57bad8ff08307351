#pragma once
#include "rooftile/core/queue.h"
#include "rooftile/core/view.h"

namespace rooftile {

struct DropoutOptions {
  double p = 0.5;  ///< the share of elements that become 0, from 0 to 1
  const char* variant =
      nullptr;  ///< null: chosen by the library; else a name that `rooftile list dropout` shows
};

struct DropoutInputs {
  ConstView x;              ///< any shape: f32, f16 or bf16
  ConstView seed;           ///< one whole number: i64, or i32, extended by its sign
  ConstView offset = {};    ///< optional: another of seed's dtype; 0
  ConstView residual = {};  ///< optional: as x
};

/// Dropout: y = residual + (kept ? x/(1 - p) : 0), residual 0 where there is none.
///
///     dropout(queue, {.x = x, .seed = view(&seed, {1})}, y, {.p = 0.1});
///
/// Element i in row-major order has the random word r_i: word i % 4 of Philox 4x32-10 whose key is `seed` and
/// whose counter is offset + i/4 (all of 64 bits, wrapping). It is kept where r_i/2^32 >= p, exactly. So the
/// mask follows from seed, offset and shape: on CPUs and GPUs, with any strides, at any number of threads.
/// Tensors of n elements take ⌈n/4⌉ offsets; calls that share a seed and a range of offsets share a mask.
///
/// Seed and offset are in the device's memory, so that a captured graph or a compiled program draws anew.
/// A product x · f32(1/(1 - p)) and a sum, rounded as f32, then to y's dtype. p = 0 gives x, exactly, and
/// p = 1 zeros. What is dropped counts as 0, also where it is infinite or NaN. Any strides, rank 0 to 8. y:
/// as x, may be x or residual. No workspace.
///
/// Errors: x, seed or y absent, a dtype or shape other than said above, p out of its range, null or
/// misaligned data, an output that overlaps itself, or an input in part; a variant that is unknown. Cost: 2n
/// elements moved, with a residual 3n; 10 rounds of 2 products for 4 elements. Source: Srivastava et al.,
/// JMLR 15 (2014); rooftile/core/philox.h.
Status dropout(const Queue& queue, const DropoutInputs& inputs, View y, const DropoutOptions& options = {});

struct DropoutBackwardInputs {
  ConstView dy;           ///< as x
  ConstView seed;         ///< the forward's
  ConstView offset = {};  ///< the forward's; absent if it had none
};
struct DropoutBackwardOutputs {
  View dx;              ///< as dy, may be dy
  View dresidual = {};  ///< optional: as dy
};

/// The gradient: dx = kept ? dy/(1 - p) : 0, by the forward's mask, computed anew from seed and offset; no
/// mask is in memory. dresidual = dy.
///
/// Errors: as dropout's; outputs that overlap each other. Cost: 2n elements moved; dresidual 2n more.
Status dropout_backward(const Queue& queue, const DropoutBackwardInputs& inputs,
                        const DropoutBackwardOutputs& outputs, const DropoutOptions& options = {});

}  // namespace rooftile
