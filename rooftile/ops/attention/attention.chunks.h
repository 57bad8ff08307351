#pragma once
// How a row's softmax goes on from chunk to chunk of its keys, on a GPU. Keys are cut at multiples of
// kAttentionChunk, counted from a sequence's first. Each chunk has an online softmax of its own; a total
// takes the chunks in ascending order, and the row's sink last. So a row's bits are the same where one block
// passes through all chunks and where each chunk is another block's (Dao et al., "Flash-Decoding", 2023).
#include <type_traits>

#include "rooftile/backend/cuda/ptx.h"
#include "rooftile/ops/attention/attention.problem.h"
#include "rooftile/tile/cuda/tile.h"

namespace rooftile::attention_gpu {

inline constexpr float kLog2E = 1.4426950408889634f;

/// x, unknown to the compilers (a block has one layer of threads): an array that it indexes lies in memory,
/// not in registers.
ROOFTILE_TILE int unknown(int x) { return x + static_cast<int>(threadIdx.z); }

// [chunks]
/// Weights of a chunk or of a total: relative to `most` (the highest score, or nearly), and with the sum
/// `sum`. Of f32 they are powers of e, of f16 and bf16 powers of 2; f16's are times 2^7, so that the smallest
/// that count are normal numbers.
template <class T>
struct RowWeights {
  static constexpr bool kOfE = std::is_same_v<T, float>;
  static constexpr float kShift = std::is_same_v<T, f16> ? 7 : 0, kOne = 1 << int(kShift);
  float most, sum;

  /// Of a total: adds the sink, a weight whose value is 0 (-inf: there is none). What y's sums are multiplied
  /// with, `kept` being what dropout makes of 1.
  ROOFTILE_TILE float finish(float sink, float kept);
  ROOFTILE_TILE float lse() const { return fmaf(most + kShift, kOfE ? 1 : 1 / kLog2E, logf(sum / kOne)); }
};

/// Adds a chunk to the total of those before, and tells how to add their sums of values. Where a row sees
/// nothing of a chunk no bit changes, nor does one of a chunk after an empty total: 2^0 is 1, and 2^-inf is
/// 0.
template <class T>
struct Merge {
  float keep, take;
  ROOFTILE_TILE Merge(RowWeights<T>& total, const RowWeights<T>& chunk) {
    const float most = fmaxf(total.most, chunk.most), unit = RowWeights<T>::kOfE ? kLog2E : 1;
    const float from = most == -HUGE_VALF ? 0 : most;  // -inf - -inf would be NaN
    keep = rooftile::cuda::exp2_approx_normal((total.most - from) * unit);
    take = rooftile::cuda::exp2_approx_normal((chunk.most - from) * unit);
    total = {most, (*this)(total.sum, chunk.sum)};
  }
  ROOFTILE_TILE float operator()(float total, float chunk) const { return fmaf(total, keep, chunk * take); }
};
// [/chunks]

template <class T>
ROOFTILE_TILE float RowWeights<T>::finish(float sink, float kept) {
  if (sink != -HUGE_VALF) kept *= Merge<T>(*this, {kOfE ? sink : fmaf(sink, kLog2E, -kShift), kOne}).keep;
  return sum == 0 ? 0 : kept / sum;
}

}  // namespace rooftile::attention_gpu
