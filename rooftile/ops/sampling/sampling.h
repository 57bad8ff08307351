#pragma once
#include <cstdint>

#include "rooftile/core/queue.h"
#include "rooftile/core/view.h"

namespace rooftile {

struct TopKOptions {
  std::int64_t k = 1;             ///< 1 to 64
  const char* variant = nullptr;  ///< null: chosen by the library; else one of `rooftile list top_k`
};
struct TopKOutputs {
  View values;   ///< {…, k}: as x
  View indices;  ///< {…, k}: i64
};

/// The k largest elements of each row, largest first, and where they are.
///
///     top_k(queue, x, {.values = values, .indices = indices}, {.k = 8});
///
/// Of equal elements the smallest index comes first; 0 and -0 are equal. A NaN is larger than every number,
/// as row_arg has it. Values are x's elements as they are. x: {…, N}, f32, f16 or bf16, rank 1 to 8, any
/// strides, k <= N < 2^31. The same bits on every machine, since nothing is computed. No workspace.
///
/// Errors: an absent view, a dtype or shape other than said above, null or misaligned data, outputs that
/// overlap each other, themselves or x; rows shorter than k, or of 2^31 elements; an unknown variant. Cost: x
/// read once.
Status top_k(const Queue& queue, ConstView x, const TopKOutputs& outputs, const TopKOptions& options = {});

struct SampleOptions {
  double temperature = 1;  ///< logits are divided by it; 0: the largest logit's token
  std::int64_t top_k = 0;  ///< tokens that may be drawn: the k largest; 0: all
  double top_p = 1;        ///< of these the fewest that have this share of their probability
  double min_p = 0;        ///< of these the ones with this share of the largest's probability at least
  const char* variant = nullptr;
};
struct SampleInputs {
  ConstView logits;        ///< {…, N}: f32, f16 or bf16, any strides; N < 2^31
  ConstView seed;          ///< one whole number: i64, or i32, extended by its sign
  ConstView offset = {};   ///< optional: another of seed's dtype; 0
  ConstView seeds = {};    ///< optional, {…}: one per row, of seed's dtype; added to it
  ConstView offsets = {};  ///< optional, {…}: one per row, of seed's dtype; added to offset
};

/// Draws one token, an index below N, from each row of logits: temperature, then top_k, top_p and min_p, as
/// samplers of language models order them.
///
/// Tokens are sorted by logit, the largest first, the smallest index first of equal ones. Each has the weight
/// w = ⌊2^30 · e^((x - max x)/temperature)⌋, a whole number: sums of weights are exact in any order. So a
/// row's token follows from seed, offset, the row's index and its logits alone. It is the same on every CPU
/// and GPU, with any strides, threads and rows beside it. A token with less than 2^-30 of the largest
/// probability is never drawn. top_p is rounded down to a multiple of 2^-32; the first token always remains.
///
/// Row r in row-major order has a random number R of 64 bits: words 0 (upper half) and 1 of Philox 4x32-10
/// with the key `seed` and the counter {lower, upper half of offset + r, 1, 0}. With M the sum of the weights
/// that remain, its token is the first one in sorted order up to which weights sum up to more than
/// ⌊R·M/2^64⌋. A call takes as many offsets as it has rows; dropout's counters end in {0, 0}.
///
/// With `seeds` the key is seed + seeds[r]; with `offsets` the counter begins with offset + offsets[r]; both
/// sums wrap. With either, r itself has no part in the number. So a request that brings its seed, and how
/// many tokens it has, draws the same one in any batch and at any place there.
///
/// A row that has a NaN, or -∞ alone, or no element, has no distribution: its token is -1. Equal logits of
/// +∞ share all probability. Seed and offset are in the device's memory. No workspace, nothing is retried.
///
/// Errors: an absent view, a dtype or shape other than said above, an option out of range, null or misaligned
/// data, an output that overlaps an input or itself; rows of 2^31 elements; an unknown variant. Cost: top_k
/// of 1 to 64, or temperature 0, reads the logits once; else 3 to 9 passes over a row, which stays in a
/// cache. Source: Holtzman et al., The Curious Case of Neural Text Degeneration (2020).
Status sample(const Queue& queue, const SampleInputs& inputs, View token, const SampleOptions& options = {});

}  // namespace rooftile
