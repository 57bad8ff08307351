#pragma once
// Running averages as their definition reads, pair by pair.
#include "rooftile/harness/signature_spec.h"

namespace rooftile::harness {

struct EmaOracle {
  template <class S>
  static void run(const Case& c, Arrays<S>& a) {
    const double decay = c.parameter("decay", 0.999);
    for (std::int64_t item = 0; item < static_cast<std::int64_t>(c.parameter(kTensors, 1)); ++item) {
      Array<S>&average = a[item_name("average", item)], &parameter = a[item_name("parameter", item)];
      for (std::int64_t i = 0; i < average.size(); ++i) {
        const S x = average.load(i), p = parameter.load(i);
        // From the nearer of the two: the other way round, a number far larger would leave none of the
        // result's digits.
        average.store(i, decay == 1       ? x
                         : 1 - decay < .5 ? x + S(1 - decay) * (p - x)
                                          : p + S(decay) * (x - p));
      }
    }
  }
};

}  // namespace rooftile::harness
