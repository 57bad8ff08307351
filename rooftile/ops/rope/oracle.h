#pragma once
// The rotation as its equation reads, in any scalar.
#include <algorithm>

#include "rooftile/harness/spec.h"

namespace rooftile::harness {

/// A case's shape is {B, S, H, D, G, R}.
struct RopeCase {
  std::int64_t b, s, h, d, g, pairs;
  explicit RopeCase(const Case& c)
      : b(c.shape[0]), s(c.shape[1]), h(c.shape[2]), d(c.shape[3]), g(c.shape[4]) {
    const auto rotary = static_cast<std::int64_t>(c.parameter("rotary"));
    pairs = c.parameter("inv_freq") != 0 ? c.shape[5] : (rotary ? rotary : d) / 2;
    pairs = std::min(pairs, d / 2);
  }
  double tokens() const { return double(b * s); }
};

template <bool kBackward>
struct RopeOracle {
  template <class S>
  static void run(const Case& c, Arrays<S>& a) {
    const RopeCase r(c);
    const Array<S>*positions = a.find("positions"), *inv_freq = a.find("inv_freq");
    const double base = c.parameter("base", 10000), factor = c.parameter("attention_factor", 1);
    const bool neighbours = c.parameter("interleaved") != 0;
    struct Heads {
      const Array<S>* x;
      Array<S>* y;
      std::int64_t count;
    };
    const Heads all[] = {{a.find(kBackward ? "dyq" : "q"), a.find(kBackward ? "dq" : "yq"), r.h},
                         {a.find(kBackward ? "dyk" : "k"), a.find(kBackward ? "dk" : "yk"), r.g}};
    // Below the smallest normal number of f32 a rounding is no share of the number any more.
    const double size = std::max(factor, 0x1p-126);
    for (std::int64_t token = 0; token < r.b * r.s; ++token) {
      const double position =
          (positions ? to_double(positions->load(token)) : double(token % r.s)) + c.parameter("offset");
      for (std::int64_t i = 0; i < r.pairs; ++i) {
        const S frequency =
            inv_freq
                ? inv_freq->load(i)
                : S(static_cast<double>(static_cast<float>(std::pow(base, -double(i) / double(r.pairs)))));
        const S angle = S(position) * frequency;
        const S cosine = S(std::cos(to_double(angle))) * S(factor);
        const S sine = S((kBackward ? -1 : 1) * std::sin(to_double(angle))) * S(factor);
        // The product may be off by a rounding of double.
        const double off = 1 + std::fabs(to_double(angle)) * 0x1p-28;
        for (const Heads& heads : all)
          for (std::int64_t h = 0; h < heads.count; ++h) {
            const std::int64_t row = (token * heads.count + h) * r.d;
            const std::int64_t first = row + (neighbours ? 2 * i : i),
                               second = first + (neighbours ? 1 : r.pairs);
            const S x = heads.x->load(first), y = heads.x->load(second);
            const double its =
                size * off * (std::fabs(to_double(x)) + std::fabs(to_double(y)) + 0x1p-126) + 0x1p-126;
            heads.y->store(first, x * cosine - y * sine, its);
            heads.y->store(second, y * cosine + x * sine, its);
          }
      }
      for (const Heads& heads : all)
        for (std::int64_t h = 0; h < heads.count; ++h)
          for (std::int64_t at = 2 * r.pairs; at < r.d; ++at) {
            const std::int64_t element = (token * heads.count + h) * r.d + at;
            heads.y->store(element, heads.x->load(element));
          }
    }
  }
};

}  // namespace rooftile::harness
