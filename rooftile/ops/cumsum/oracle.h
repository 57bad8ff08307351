#pragma once
// Running sums as their definition reads, in any scalar.
#include "rooftile/harness/row_spec.h"

namespace rooftile::harness {

template <class S>
void running_sums(const Case& c, const Array<S>& x, Array<S>& y, bool reverse) {
  const std::int64_t columns = c.shape.back();
  const bool exclusive = c.parameter("exclusive") != 0;
  for (std::int64_t row = 0; row < rows_of_case(c); ++row) {
    S sum(0);
    double terms = 0;
    for (std::int64_t k = 0; k < columns; ++k) {
      const std::int64_t at = row * columns + (reverse ? columns - 1 - k : k);
      const S its = x.load(at);
      if (exclusive) y.store(at, sum, terms);
      sum += its;
      terms += std::fabs(to_double(its));
      if (!exclusive) y.store(at, sum, terms);
    }
  }
}

struct CumsumOracle {
  template <class S>
  static void run(const Case& c, Arrays<S>& a) {
    running_sums(c, a["x"], a["y"], c.parameter("reverse") != 0);
  }
};
struct CumsumBackwardOracle {
  template <class S>
  static void run(const Case& c, Arrays<S>& a) {
    running_sums(c, a["dy"], a["dx"], c.parameter("reverse") == 0);
  }
};

}  // namespace rooftile::harness
