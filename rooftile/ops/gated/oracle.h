#pragma once
#include "rooftile/ops/activation/oracle.h"

namespace rooftile::harness {

/// y = f(gate)·up.
template <class F>
struct GatedOracle {
  template <class S>
  static void run(const Case& c, Arrays<S>& a) {
    for (std::int64_t i = 0; i < a["y"].size(); ++i)
      a["y"].store(i, F::value(c, a["gate"].load(i)) * a["up"].load(i));
  }
};

/// dgate = dy·up·f'(gate), dup = dy·f(gate).
template <class F>
struct GatedBackwardOracle {
  template <class S>
  static void run(const Case& c, Arrays<S>& a) {
    for (std::int64_t i = 0; i < a["dup"].size(); ++i) {
      const S gate = a["gate"].load(i), up = a["up"].load(i), dy = a["dy"].load(i);
      a["dup"].store(i, dy * F::value(c, gate));
      a["dgate"].store(i, dy * up * F::slope(c, gate));
    }
  }
};

}  // namespace rooftile::harness
