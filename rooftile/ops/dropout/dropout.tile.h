#pragma once
#include "rooftile/ops/dropout/dropout.problem.h"
#include "rooftile/tile/elements.h"
#include "rooftile/tile/philox.h"

namespace rooftile::kernels {
using namespace rooftile::tile;

// [dropout]
/// y = kept ? x/(1 - p) : 0, or that and a residual. A selection: a product with a mask of 0 would make NaN
/// of what is infinite.
struct Dropout {
  static constexpr bool kIndexed = true;
  PhiloxKeep keep;
  PhiloxStream stream;

  template <Lanes X>
  ROOFTILE_TILE auto operator()(std::uint64_t index, const X& x) const {
    return select(kept<X>(index), x * keep.scale, like(x, 0));
  }
  template <Lanes X>
  ROOFTILE_TILE auto operator()(std::uint64_t index, const X& x, const X& residual) const {
    return select(kept<X>(index), fma(x, keep.scale, residual), residual);
  }
  template <Lanes X>
  ROOFTILE_TILE auto kept(std::uint64_t index) const {
    return (random_words<X>(stream, index) & keep.words) >= keep.least;
  }
};
// [/dropout]

/// The same, before seed and offset are read from memory.
struct DropoutStart {
  PhiloxKeep keep;
  PhiloxNumbers numbers;

  ROOFTILE_TILE Dropout start() const { return {keep, numbers.stream()}; }
};

}  // namespace rooftile::kernels
