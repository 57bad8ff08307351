#pragma once
#include "rooftile/ops/activation/oracle.h"

namespace rooftile::harness {

/// y = f(gate)·up.
template <class F>
constexpr auto kGated =
    []<class S>(const Case& c, const S& gate, const S& up) { return F::value(c, gate) * up; };
/// dgate = dy·up·f'(gate), dup = dy·f(gate).
template <class F>
constexpr auto kGatedBackward = []<class S>(const Case& c, const S& gate, const S& up, const S& dy) {
  return std::pair<S, S>(dy * up * F::slope(c, gate), dy * F::value(c, gate));
};

}  // namespace rooftile::harness
