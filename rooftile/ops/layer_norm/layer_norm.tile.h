#pragma once
// One pass over a row gathers Σ(h - shift) and Σ(h - shift)², from which come its mean and variance
// (T. Chan, G. Golub, R. LeVeque, https://doi.org/10.1080/00031305.1983.10483115).
#include "rooftile/ops/layer_norm/layer_norm.problem.h"
#include "rooftile/tile/rows.h"

namespace rooftile::kernels {
using namespace rooftile::tile;

/// What read() adds to. With shift = 0 the variance is E[h²] - E[h]², which loses all digits where the mean
/// is large. Here the shift is the mean of the row's first eighth (a team that holds the row takes all of it,
/// or of the part that its block has). Whatever the row holds, the mean of an eighth of it lies within √7
/// standard deviations of the whole's (Cauchy and Schwarz), so the difference below takes at most 8 times the
/// variance from itself: three bits at worst, none as a rule. The second of two exact passes is saved.
template <class Team, class T>
struct LayerNormSums {
  /// Whether Σ(h - shift) is gathered. A team that holds rows does without where elements have 16 bits: its
  /// shift is the mean, but for what it was rounded by, which the sum tells. That is exact where it counts:
  /// elements far from 0 lie within a power of two or on both sides of one, so that a sum of 1024 of them, a
  /// warp's, has 22 bits at most, and the warps' are added to more than a float holds.
  static constexpr bool kDifferences = !Team::kHoldsRows || sizeof(T) == sizeof(float);
  typename Team::Real shift, rest;  // rest: what the mean has beside it, where differences are not summed
  typename Team::Accumulator differences, squares;
};

/// One row: y = (h - mean) · rstd · weight + bias, rstd = 1 / √(Σ (h - mean)² / N + eps).
template <class Real>
struct LayerNorm {
  using Problem = LayerNormProblem;
  static constexpr bool kAddsResidual = true, kSamples = true;
  enum { kWeight, kBias };  // vectors
  Real eps;
  constexpr float absent(int vector) const { return vector == kWeight ? 1 : 0; }

  /// y = ((h · factor - shift) · rstd + offset) · weight + bias. The factor is a power of two: 1, but of far
  /// rows, whose squares leave f32, and which the second look multiplies by `far`.
  struct Found {
    Real shift, rstd, offset, mean, factor, far;
  };

  // [begin]
  template <class Team, class T, RowCounts n>
  ROOFTILE_TILE LayerNormSums<Team, T> begin(const Team& team, const RowOperands<T, n>& row, Real each_one,
                                             const auto& in) const {
    using Sums = LayerNormSums<Team, T>;
    const std::int64_t size = team.sample(row.in[0].size);
    Sums sums{};
    sums.differences = team.accumulator();
    team.each(size, [&](auto chunk) ROOFTILE_INLINE {  // empty lanes are 0
      sums.differences[chunk] += in(chunk)[0];
    });
    if constexpr (!Team::kHoldsRows) {
      sums.shift = team.sum(sums.differences) / static_cast<Real>(size);
    } else {
      const float count = static_cast<float>(static_cast<int>(size));
      const float each_of = each_of_part(team, size, each_one);
      if constexpr (Sums::kDifferences) {
        sums.shift = quotient(team.part_sum(sums.differences), count, each_of);
      } else {
        const auto sum = team.part_sum_in_two(sums.differences);
        sums.shift = quotient(sum.first, count, each_of);
        sums.rest =
            sums.shift - sums.shift == 0 ? (fused(-sums.shift, count, sum.first) + sum.second) * each_of : 0;
      }
    }
    // Any shift is right, but inf - inf would make a NaN of an infinite mean.
    if (Sums::kDifferences && !(sums.shift - sums.shift == 0)) sums.shift = 0;
    sums.differences = sums.squares = team.accumulator();
    return sums;
  }
  // [/begin]
  // [read]
  template <class Team, class T>
  ROOFTILE_TILE void read(LayerNormSums<Team, T>& sums, const auto& at) const {
    const auto d = at.team.only(at.chunk, at.in[0] - sums.shift, 0);
    if constexpr (LayerNormSums<Team, T>::kDifferences) sums.differences[at.chunk] += d;
    sums.squares[at.chunk] = fma(d, d, sums.squares[at.chunk]);
  }
  // [/read]
  // [measure]
  template <class Team, class T>
  ROOFTILE_TILE Found measure(const Team& team, const LayerNormSums<Team, T>& sums, const auto& row,
                              Real each_one) const {
    Real shift = sums.shift, delta, variance;  // delta: from there to the mean
    if constexpr (Team::kHoldsRows) {
      const std::int64_t size = row.in[0].size;
      const auto all = team.joined(part_of(team, sums, size, each_one), size, each_one);
      shift = all.shift;
      delta = all.rest;
      variance = all.squares * each_one;
    } else {
      // As quotients, or the variance of one value throughout would be what 1 / n was rounded by.
      const auto both = team.sums(sums.differences, sums.squares);
      const Real count = static_cast<Real>(row.in[0].size);
      delta = quotient(both.first, count, each_one);
      variance = quotient(both.second, count, each_one) - delta * delta;
    }
    return found_of(shift, delta, variance, 1, far_of(shift, variance));
  }
  // [/measure]
  ROOFTILE_TILE Found found_of(Real shift, Real delta, Real variance, Real factor, Real far) const {
    if (variance < 0) variance = 0;
    const Real rstd = rsqrt(variance + eps * factor * factor);
    // h - shift is exact where shift + delta had to be rounded.
    return {shift, rstd, -delta * rstd, shift + delta, factor, far};
  }
  ROOFTILE_TILE Tiles<Real, 2> statistics(const Found& found) const {
    return {{found.mean, found.rstd * found.factor}};
  }
  ROOFTILE_TILE auto write(const Found& found, const auto& at, const auto&) const {
    const auto off = fma(at.in[0], found.factor, -found.shift);
    return fma(fma(off, found.rstd, found.offset), at.w[kWeight], at.w[kBias]);
  }

  // [second_look]
  ROOFTILE_TILE static Real second_look(const Found& found) { return found.far; }
  /// What elements are to be multiplied by where the variance overflows, is NaN since Σ h does, or is so
  /// small that squares lost digits. (Elements far from 0 whose variance is small are all one value.) Of
  /// doubles 1.
  ROOFTILE_TILE Real far_of(Real mean, Real variance) const {
    if constexpr (std::is_same_v<Real, double>) return 1;
    if (!(variance - variance == 0)) return kShrinks;
    return variance < kLeastSquares && eps < kLeastSquares && mean * mean < 0x1p-20f ? kGrows : 1;
  }
  /// The mean of such a row, then its moments about that.
  struct SumAgain {
    static constexpr int kSums = 1;
    float factor;
    ROOFTILE_TILE auto operator()(const auto&, const auto&, const auto& h) const {
      return Tiles<std::decay_t<decltype(h)>, 1>{{h * factor}};
    }
  };
  struct MomentsAgain {
    static constexpr int kSums = 2;
    float factor, shift;
    ROOFTILE_TILE auto operator()(const auto& team, const auto& chunk, const auto& h) const {
      const auto d = team.only(chunk, h * factor - shift, 0);
      return Tiles<std::decay_t<decltype(d)>, 2>{{d, d * d}};
    }
  };
  ROOFTILE_TILE Found look_again(const auto& sums_of, float count, float each_one, float factor) const {
    const float shift = quotient(sums_of(SumAgain{factor})[0], count, each_one);
    const auto both = sums_of(MomentsAgain{factor, shift});
    const float delta = quotient(both[0], count, each_one);
    const float variance = quotient(both[1], count, each_one) - delta * delta;
    Found found = found_of(shift, delta, variance, factor, 1);
    // The shift is the mean, and what it was rounded by counts for y alone: Σ (h - shift) may be rounded by
    // more, where one element is far from all others, which are alike.
    found.mean = shift / factor;
    return found;
  }
  // [/second_look]

 private:
  /// 1 / the elements that a team's block has of a row.
  ROOFTILE_TILE static float each_of_part(const auto& team, std::int64_t size, float each_one) {
    return team.has_part() ? 1 / static_cast<float>(static_cast<int>(size)) : each_one;
  }
  /// Of a team that holds rows: what its block has of this one.
  template <class Team, class T>
  ROOFTILE_TILE static auto part_of(const Team& team, const LayerNormSums<Team, T>& sums, std::int64_t size,
                                    float each_one) {
    // Σ(h - mean)² of those about the shift: less the square of what is left of the mean, times their number.
    const auto moments = [&](float from_shift, float sum, auto about_shift) {
      return typename Team::Moments{sums.shift, from_shift, fused(-from_shift, sum, about_shift)};
    };
    const float count = static_cast<float>(static_cast<int>(size));
    if constexpr (!LayerNormSums<Team, T>::kDifferences) {
      return moments(sums.rest, sums.rest * count, team.part_sum(sums.squares));
    } else {
      const auto both = team.part_sums(sums.differences, sums.squares);
      return moments(quotient(both.first, count, each_of_part(team, size, each_one)), both.first,
                     both.second);
    }
  }
};

}  // namespace rooftile::kernels
