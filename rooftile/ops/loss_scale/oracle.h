#pragma once
// Loss scaling as its definition reads. The product is one of f32, whatever the scalar that values are kept
// in.
#include <limits>

#include "rooftile/harness/signature_spec.h"

namespace rooftile::harness {

struct UnscaleOracle {
  template <class S>
  static void run(const Case& c, Arrays<S>& a) {
    const auto factor = static_cast<float>(1 / to_double(a["scale"].load(0)));
    bool finite = true;
    for (std::int64_t item = 0; item < static_cast<std::int64_t>(c.parameter(kTensors, 1)); ++item) {
      Array<S>& gradient = a[item_name("gradient", item)];
      for (std::int64_t i = 0; i < gradient.size(); ++i) {
        const auto g = static_cast<float>(to_double(gradient.load(i)));
        finite = finite && std::isfinite(g);
        gradient.store(i, S(static_cast<double>(g * factor)));
      }
    }
    a["found_inf"].store(0, S(finite ? 0.0 : 1.0));
  }
};

struct UpdateLossScaleOracle {
  template <class S>
  static void run(const Case& c, Arrays<S>& a) {
    const double scale = to_double(a["scale"].load(0)), steps = to_double(a["growth_tracker"].load(0)) + 1;
    const bool found = to_double(a["found_inf"].load(0)) != 0;
    const bool grows = !found && steps >= c.parameter("growth_interval", 2000);
    const double next = found   ? scale * c.parameter("backoff_factor", 0.5)
                        : grows ? scale * c.parameter("growth_factor", 2)
                                : scale;
    const auto rounded = static_cast<double>(static_cast<float>(next));
    a["scale"].store(0, S(grows && !std::isfinite(rounded) ? scale : rounded));
    a["growth_tracker"].store(0, S(found || grows ? 0.0 : steps));
  }
};

}  // namespace rooftile::harness
