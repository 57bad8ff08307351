#pragma once
// How far s·x lies below the largest s·x of its row, for any finite s and x.
#include <limits>

#define ROOFTILE_SPLIT constexpr __attribute__((always_inline))  // no copy of one instruction set for all

namespace rooftile::tile {

/// A scale s as two factors: `unit`, a power of two with the sign of s, and `rest` = s / unit. The distance
/// is (x·unit - row_max)·rest, row_max being the largest x·unit.
///
/// The product by a power of two is exact: equal elements are 0 apart, however large, and close ones exactly
/// as far as they are. s·x itself would be rounded, by more than an exponential bears from |s·x| = 2^30 on (a
/// row of -1e30 throughout and s = 1/√128 gave NaN). By 2^-24 no difference of floats overflows; what it
/// rounds off subnormal ones is 2^-62 of a distance at most. From |s| = 2^64 on `rest` could overflow: there
/// differences are taken as they are, and where one overflows, the distance does. Of s = 0 the unit is 0,
/// and 0 · inf is NaN, as the equation has it. Of doubles the same numbers do: there 2^-24 rounds off less.
template <class Real>
struct SplitScaleOf {
  Real unit, rest;
  Real rest_log2e;  ///< rest · log2 e / more, for powers of two
  Real more;        ///< 2 where rest · log2 e would overflow, else 1

  ROOFTILE_SPLIT explicit SplitScaleOf(double s) : SplitScaleOf(Rounded{static_cast<Real>(s)}) {}

 private:
  struct Rounded {
    Real s;
  };
  ROOFTILE_SPLIT explicit SplitScaleOf(Rounded r)
      : unit(r.s == 0 ? 0 : (r.s < 0 ? -1.f : 1.f) * (magnitude(r.s) < kLarge ? 0x1p-24f : 1.f)),
        rest(r.s == 0 ? 1 : magnitude(r.s) * (magnitude(r.s) < kLarge ? 0x1p24f : 1.f)),
        rest_log2e(rest * (overflows(rest) ? kLog2E / 2 : kLog2E)),
        more(overflows(rest) ? 2 : 1) {}

  static constexpr Real kLarge = 0x1p64f, kMax = std::numeric_limits<Real>::max(), kLog2E = 0x1.715476p0f;
  ROOFTILE_SPLIT static Real magnitude(Real s) { return s < 0 ? -s : s; }
  /// Whether rest · log2 e does, of a finite rest: infinity times a difference of 0 would be NaN.
  ROOFTILE_SPLIT static bool overflows(Real rest) { return rest <= kMax && rest > kMax / kLog2E; }
};
using SplitScale = SplitScaleOf<float>;

}  // namespace rooftile::tile

#undef ROOFTILE_SPLIT
