#pragma once
// Attention to codes with scales as the equations read, in any scalar.
#include "rooftile/ops/attention/oracle.h"

namespace rooftile::harness {

/// attention's rows, with the scales of their batch and key head. wgmma_f8's weights are e4m3 of 2^8 · p, of
/// which those below 2^-6 have fewer digits.
struct AttentionScaledOracle {
  template <class S>
  static void run(const Case& c, Arrays<S>& arrays) {
    const AttentionCase all(c);
    std::vector<S> weight(static_cast<std::size_t>(all.t));
    std::vector<double> terms(static_cast<std::size_t>(all.t));
    const auto scale_of = [&](const char* name, std::int64_t at) {
      return arrays.has(name) ? static_cast<float>(to_double(arrays[name].load(at))) : 1;
    };
    for (const AttentionCase& a : all.sequences(arrays))
      for (std::int64_t n = 0; n < a.b; ++n)
        for (std::int64_t head = 0; head < a.h; ++head)
          for (std::int64_t i = 0; i < a.s; ++i) {
            AttentionCase its = a;
            if (c.parameter("C") == 0) its.least_weight = std::fmax(its.least_weight, 0x1p-14);
            if (const auto [first, end] = a.keys(i); end > first) {
              const std::int64_t at = n * a.g + a.key_head(head);
              its.scale =
                  double(static_cast<float>(a.scale) * (scale_of("q_scale", at) * scale_of("k_scale", at)));
              if (arrays.has("v_scale")) its.value_scale = scale_of("v_scale", at);
            }
            AttentionOracle::row(its, arrays, n, i, head, weight, terms);
          }
  }
};

}  // namespace rooftile::harness
