#pragma once
// A transpose as its equation reads, in any scalar.
#include "rooftile/harness/spec.h"

namespace rooftile::harness {

/// y[…, j, i] = x[…, i, j].
struct TransposeOracle {
  template <class S>
  static void run(const Case& c, Arrays<S>& a) {
    const std::int64_t m = c.shape[c.shape.size() - 2], n = c.shape.back();
    const std::int64_t matrices = m > 0 && n > 0 ? a["x"].size() / (m * n) : 0;
    for (std::int64_t b = 0; b < matrices; ++b)
      for (std::int64_t i = 0; i < m; ++i)
        for (std::int64_t j = 0; j < n; ++j)
          a["y"].store((b * n + j) * m + i, a["x"].load((b * m + i) * n + j));
  }
};

}  // namespace rooftile::harness
