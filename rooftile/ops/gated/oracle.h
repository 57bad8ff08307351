#pragma once
#include "rooftile/ops/activation/oracle.h"

namespace rooftile::harness {

/// y = f(gate)·up.
template <class F>
struct GatedOracle {
  template <class S>
  static void run(const Case& c, Arrays<S>& a) {
    for (std::int64_t i = 0; i < a["y"].size(); ++i) {
      const Activated<S> f = F::value(c, a["gate"].load(i));
      const S up = a["up"].load(i);
      a["y"].store(i, f.value * up, f.magnitude * std::fabs(to_double(up)));
    }
  }
};

/// dgate = dy·up·f'(gate), dup = dy·f(gate).
template <class F>
struct GatedBackwardOracle {
  template <class S>
  static void run(const Case& c, Arrays<S>& a) {
    for (std::int64_t i = 0; i < a["dup"].size(); ++i) {
      const S gate = a["gate"].load(i), up = a["up"].load(i), dy = a["dy"].load(i);
      const Activated<S> f = F::value(c, gate), slope = F::slope(c, gate);
      a["dup"].store(i, dy * f.value, std::fabs(to_double(dy)) * f.magnitude);
      a["dgate"].store(i, dy * up * slope.value, std::fabs(to_double(dy) * to_double(up)) * slope.magnitude);
    }
  }
};

}  // namespace rooftile::harness
