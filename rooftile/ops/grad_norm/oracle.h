#pragma once
// The norm of all tensors, and each element times one factor.
#include "rooftile/harness/signature_spec.h"

namespace rooftile::harness {

inline std::int64_t grad_norm_tensors(const Case& c) {
  return static_cast<std::int64_t>(c.parameter(kTensors, 1));
}

/// min(1, max_norm / (norm + 1e-6)), and a NaN where the norm is one.
template <class S>
S grad_norm_ratio(const S& norm, double max_norm) {
  const S ratio = S(max_norm) / (norm + S(1e-6));
  return to_double(ratio) >= 1 ? S(1.0) : ratio;
}

struct GradNormOracle {
  template <class S>
  static void run(const Case& c, Arrays<S>& a) {
    const S scale = a.has("gradient_scale") ? a["gradient_scale"].load(0) : S(1.0);
    S sum(0.0);
    bool finite = true;
    for (std::int64_t item = 0; item < grad_norm_tensors(c); ++item) {
      const Array<S>& g = a[item_name("gradient", item)];
      for (std::int64_t i = 0; i < g.size(); ++i) {
        sum += g.load(i) * g.load(i);
        finite = finite && std::isfinite(to_double(g.load(i)));
      }
    }
    const S norm = sqrt(sum) * max(scale, -scale);
    a["norm"].store(0, norm, to_double(norm) / 2);
    if (a.has("coefficient")) {
      const S coefficient = scale * grad_norm_ratio(norm, c.parameter("max_norm", 1));
      a["coefficient"].store(0, coefficient, std::fabs(to_double(coefficient)) / 2);
    }
    if (a.has("found_inf")) a["found_inf"].store(0, S(finite ? 0.0 : 1.0));
  }
};

/// Where the factor is 1 the elements stay as they are, and count as touched all the same.
struct ClipByNormOracle {
  template <class S>
  static void run(const Case& c, Arrays<S>& a) {
    const S scale = a.has("gradient_scale") ? a["gradient_scale"].load(0) : S(1.0);
    const S factor = scale * grad_norm_ratio(a["norm"].load(0), c.parameter("max_norm", 1));
    // Below the smallest normal number the factor's rounding is an absolute one.
    const double largest = std::fmax(std::fabs(to_double(factor)), 0x1p-126);
    for (std::int64_t item = 0; item < grad_norm_tensors(c); ++item) {
      Array<S>& g = a[item_name("gradient", item)];
      for (std::int64_t i = 0; i < g.size(); ++i) {
        const S x = g.load(i), y = x * factor;
        g.store(i, y, std::fabs(to_double(x)) * largest);
      }
    }
  }
};

}  // namespace rooftile::harness
