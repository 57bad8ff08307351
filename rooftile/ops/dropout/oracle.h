#pragma once
// Dropout as its definition reads, in any scalar.
#include "rooftile/core/philox.h"
#include "rooftile/harness/spec.h"

namespace rooftile::harness {

/// Which elements a case keeps.
template <class S>
class DropoutMask {
 public:
  DropoutMask(const Case& c, Arrays<S>& a) : p_(c.parameter("p", 0.5)) {
    stream_.seed = whole(a["seed"]);
    stream_.offset = a.has("offset") ? whole(a["offset"]) : 0;
  }
  bool kept(std::int64_t i) const { return stream_.word(static_cast<std::uint64_t>(i)) * 0x1p-32 >= p_; }
  S scale() const { return S(p_ < 1 ? 1 / (1 - p_) : 0); }

 private:
  static std::uint64_t whole(const Array<S>& number) {
    return static_cast<std::uint64_t>(static_cast<std::int64_t>(to_double(number.load(0))));
  }
  double p_;
  PhiloxStream stream_{};
};

struct DropoutOracle {
  template <class S>
  static void run(const Case& c, Arrays<S>& a) {
    const DropoutMask<S> mask(c, a);
    const S scale = mask.scale();
    for (std::int64_t i = 0; i < a["x"].size(); ++i) {
      const S scaled = a["x"].load(i) * scale;  // one flop, kept or not
      if (!a.has("residual")) {
        a["y"].store(i, mask.kept(i) ? scaled : S(0));
        continue;
      }
      const S residual = a["residual"].load(i), sum = residual + scaled;
      a["y"].store(i, mask.kept(i) ? sum : residual);
    }
  }
};

struct DropoutBackwardOracle {
  template <class S>
  static void run(const Case& c, Arrays<S>& a) {
    const DropoutMask<S> mask(c, a);
    const S scale = mask.scale();
    for (std::int64_t i = 0; i < a["dy"].size(); ++i) {
      const S dy = a["dy"].load(i), scaled = dy * scale;
      a["dx"].store(i, mask.kept(i) ? scaled : S(0));
      if (a.has("dresidual")) a["dresidual"].store(i, dy);
    }
  }
};

}  // namespace rooftile::harness
