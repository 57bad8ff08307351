#pragma once
// The softmax on the way of the forward on Hopper: of a wgmma's scores a thread has two rows, 8 below each
// other, and of these pairs of neighbouring keys, 8 apart (wgmma.h); four lanes share a row.
#include <type_traits>

#include "rooftile/ops/attention/attention.hopper_parts.h"

namespace rooftile::attention_gpu {

#if defined(ROOFTILE_HAS_HOPPER)
namespace hopper {
using namespace rooftile::cuda;

/// Powers are taken off `base`, a row's maximum or an older one that is at most 2^8 times smaller: so its
/// sums are seldom rescaled, and when is the row's business alone. Weights of f16 are times 2^7, so that the
/// smallest that count are normal numbers: 2^15 is the largest.
template <class T>
struct HopperSoftmax {
  static constexpr float kSlack = 8, kShift = std::is_same_v<T, f16> ? 7 : 0, kOne = 1 << int(kShift);
  float base[2], sum[2], shrink[2];

  /// A row begins with its sink, whose value is 0, in one of the four lanes that add up its weights.
  ROOFTILE_TILE HopperSoftmax(float sink, int lane) {
    ROOFTILE_UNROLL for (int r = 0; r < 2; ++r) {
      base[r] = fmaf(sink, kLog2E, -kShift);
      sum[r] = lane % 4 == 0 && sink != -HUGE_VALF ? kOne : 0;
    }
  }

  /// Scores to weights; whether sums of some row of the warp must shrink.
  template <int kCount>
  ROOFTILE_TILE bool step(float (&s)[kCount], float factor) {
    float most[2][2] = {{s[0], s[1]}, {s[2], s[3]}}, part[2][2] = {}, from[2];
    ROOFTILE_UNROLL for (int i = 4; i < kCount; ++i) most[i % 4 / 2][i % 2] =
        fmaxf(most[i % 4 / 2][i % 2], s[i]);
    bool grew = false;
    ROOFTILE_UNROLL for (int r = 0; r < 2; ++r) {
      float x = fmaxf(most[r][0], most[r][1]);
      x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, 1));
      x = fmaf(fmaxf(x, __shfl_xor_sync(0xffffffffu, x, 2)), factor, -kShift);
      shrink[r] = 1;
      if (x - base[r] > kSlack) {  // not of -inf and -inf: a row that has seen nothing
        shrink[r] = exp2_approx_normal(base[r] - x);
        base[r] = x;
        grew = true;
      }
      from[r] = base[r] == -HUGE_VALF ? 0 : base[r];
    }
    ROOFTILE_UNROLL for (int i = 0; i < kCount; ++i) {
      s[i] = exp2_approx_normal(fmaf(s[i], factor, -from[i % 4 / 2]));
      part[i % 4 / 2][i % 2] += s[i];
    }
    ROOFTILE_UNROLL for (int r = 0; r < 2; ++r) sum[r] = fmaf(sum[r], shrink[r], part[r][0] + part[r][1]);
    return __any_sync(0xffffffffu, grew);
  }

  /// Of all four lanes.
  ROOFTILE_TILE float whole_sum(int r) const {
    const float two = sum[r] + __shfl_xor_sync(0xffffffffu, sum[r], 1);
    return two + __shfl_xor_sync(0xffffffffu, two, 2);
  }
};

/// Scores of keys that a thread's rows, `row` and 8 below, do not see become -inf. n: which tile of keys.
template <int kKeys, int kCount>
ROOFTILE_TILE void mask_scores(float (&s)[kCount], const HopperRun& run, int row, int lane, int n) {
  const int column = n * kKeys + lane % 4 * 2;
  int from[2], to[2];
  ROOFTILE_UNROLL for (int r = 0; r < 2; ++r) {
    const int end = row + r * 8 + run.reach;
    from[r] = row + r * 8 + run.back - column;
    to[r] = (end < run.keys ? end : run.keys) - column;
  }
  ROOFTILE_UNROLL for (int i = 0; i < kCount; ++i) {
    const int key = i / 4 * 8 + i % 2;
    if (key < from[i % 4 / 2] || key >= to[i % 4 / 2]) s[i] = -HUGE_VALF;
  }
}

}  // namespace hopper
#endif

}  // namespace rooftile::attention_gpu
