#pragma once
// NF4 as its definition reads. Every operation is one of f32, whatever the scalar that values are kept in.
#include "rooftile/harness/spec.h"
#include "rooftile/ops/nf4/nf4.problem.h"

namespace rooftile::harness {

inline std::int64_t nf4_block(const Case& c) { return static_cast<std::int64_t>(c.parameter("block", 64)); }
inline std::int64_t nf4_first(const Case& c) { return static_cast<std::int64_t>(c.parameter("first")); }

struct QuantizeNf4Oracle {
  template <class S>
  static void run(const Case& c, Arrays<S>& a) {
    const Array<S>& x = a["x"];
    const std::int64_t n = x.size(), block = nf4_block(c);
    const auto value = [&](std::int64_t i) { return static_cast<float>(to_double(x.load(i))); };
    for (std::int64_t begin = 0; begin < n; begin += block) {
      const std::int64_t end = std::min(n, begin + block);
      float most = 0;
      for (std::int64_t i = begin; i < end; ++i) most = std::fmax(most, std::fabs(value(i)));
      a["absmax"].store(begin / block, S(static_cast<double>(most)));
      const float each_one = 1 / most;
      const auto code = [&](std::int64_t i) {
        if (i >= end) return 7;  // the level 0
        const float scaled = value(i) * each_one;
        int nearest = 0;
        while (nearest < 15 && scaled > kNf4Thresholds[nearest]) ++nearest;
        return nearest;
      };
      for (std::int64_t i = begin; i < end; i += 2)
        a["packed"].store(i / 2, S(double(code(i) * 16 + code(i + 1))));
    }
  }
};

struct DequantizeNf4Oracle {
  template <class S>
  static void run(const Case& c, Arrays<S>& a) {
    Array<S>& y = a["y"];
    const std::int64_t block = nf4_block(c), first = nf4_first(c);
    for (std::int64_t i = 0; i < y.size(); ++i) {
      const std::int64_t at = first + i;
      const int byte = static_cast<int>(to_double(a["packed"].load(at / 2)));
      const float scale = static_cast<float>(to_double(a["absmax"].load(at / block)));
      y.store(i, S(double(kNf4Levels[at % 2 ? byte & 15 : byte >> 4] * scale)));
    }
  }
};

}  // namespace rooftile::harness
