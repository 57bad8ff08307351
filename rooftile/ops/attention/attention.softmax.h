#pragma once
// The online softmax of the kernels on tensor cores, by mma.sync and by wgmma alike: of scores that a
// product left, a lane has two rows, 8 below each other, and of these, of each 8 keys, its lane % 4-th pair.
// A row's bits follow from the keys of a tile, which are one number for all kernels of a size.
#include "rooftile/ops/attention/attention.chunks.h"

namespace rooftile::attention_gpu {

/// Over the four lanes that share a row.
ROOFTILE_TILE float max_of_row(float x) {
  x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, 1));
  return fmaxf(x, __shfl_xor_sync(0xffffffffu, x, 2));
}
ROOFTILE_TILE float sum_of_row(float x) {
  x += __shfl_xor_sync(0xffffffffu, x, 1);
  return x + __shfl_xor_sync(0xffffffffu, x, 2);
}

/// A lane's weights of a row in a tile: those of each 16 keys are added first, which may be a warp's own.
template <int kSixteens>
struct SumOfSixteens {
  static_assert(kSixteens == 2 || kSixteens == 4);
  float of[kSixteens];
  ROOFTILE_TILE float sum() const {
    if constexpr (kSixteens == 2) return of[0] + of[1];
    return (of[0] + of[1]) + (of[2] + of[3]);
  }
};

/// A lane's two rows in one chunk of keys. Powers are taken off `most`, the row's maximum or an older one
/// that is at most 2^8 times smaller: so sums are seldom rescaled, and when is the row's business alone. 2^15
/// is the largest weight of f16. `sum` is the lane's own.
template <class T>
struct OnlineSoftmax {
  static constexpr float kSlack = 8, kShift = RowWeights<T>::kShift;
  RowWeights<T> row[2] = {{-HUGE_VALF, 0}, {-HUGE_VALF, 0}};

  /// A tile's scores, at(4g + 2·row + e) of the g-th 8 keys' pair, become weights. shrink: what sums of
  /// values so far must be multiplied with; whether that changes them.
  template <int kKeys, class At>
  ROOFTILE_TILE bool step(At&& at, float factor, float (&shrink)[2]) {
    bool grew = false;
    ROOFTILE_UNROLL for (int r = 0; r < 2; ++r) {
      float most = -HUGE_VALF;
      ROOFTILE_UNROLL for (int g = 0; g < kKeys / 8; ++g) most =
          fmaxf(most, fmaxf(at(4 * g + 2 * r), at(4 * g + 2 * r + 1)));
      most = fmaf(max_of_row(most), factor, -kShift);
      shrink[r] = 1;
      if (most - row[r].most > kSlack) {  // not of -inf and -inf: a row that has seen nothing
        shrink[r] = rooftile::cuda::exp2_approx_normal(row[r].most - most);
        grew |= row[r].most != -HUGE_VALF;  // else the sums are 0
        row[r].most = most;
      }
      row[r].sum *= shrink[r];
    }
    ROOFTILE_UNROLL for (int r = 0; r < 2; ++r) {
      const float from = row[r].most == -HUGE_VALF ? 0 : row[r].most;
      SumOfSixteens<kKeys / 16> sums;
      ROOFTILE_UNROLL for (int k = 0; k < kKeys / 16; ++k) {
        float weight[4];
        ROOFTILE_UNROLL for (int j = 0; j < 4; ++j) {
          float& score = at(8 * k + 4 * (j / 2) + 2 * r + j % 2);
          weight[j] = score = rooftile::cuda::exp2_approx_normal(fmaf(score, factor, -from));
        }
        sums.of[k] = (weight[0] + weight[1]) + (weight[2] + weight[3]);
      }
      row[r].sum += sums.sum();
    }
    return grew;
  }

  /// Of the whole row r.
  ROOFTILE_TILE RowWeights<T> weights(int r) const { return {row[r].most, sum_of_row(row[r].sum)}; }
};

/// Four neighbouring sums of values, two of each row: a chunk's become those of `before` and the chunk's.
template <class T>
ROOFTILE_TILE void add_four(float* four, const float4& before, const Merge<T> (&merge)[2]) {
  four[0] = merge[0](before.x, four[0]), four[1] = merge[0](before.y, four[1]);
  four[2] = merge[1](before.z, four[2]), four[3] = merge[1](before.w, four[3]);
}

}  // namespace rooftile::attention_gpu
