#pragma once
// Each element by itself: three numbers are read, two written, and three fused multiply-adds lie between.
#include "rooftile/ops/sgd/sgd.problem.h"
#include "rooftile/tile/lists.h"

namespace rooftile::kernels {
using namespace rooftile::tile;

/// What a step's elements share.
struct SgdStep {
  bool skips;  ///< an overflow was found
  bool first, nesterov;
  float gradient_factor, decay, momentum, share, lr;
};

struct Sgd {
  using Numbers = SgdNumbers;
  using Shared = SgdStep;
  static constexpr int kValues = kSgdMaster;
  static constexpr bool kMaster = true;
  static constexpr unsigned kWritten = 1u << kSgdParameter | 1u << kSgdBuffer;

  /// Counts the step, and computes what its elements share.
  ROOFTILE_TILE static SgdStep begin(const Numbers& n) {
    SgdStep s{};
    s.skips = n.found_inf && *n.found_inf != 0;
    if (s.skips) return s;
    std::int64_t step = n.step;
    if (n.steps) step = *n.steps += 1;
    const double scale = n.gradient_scale ? static_cast<double>(*n.gradient_scale) : 1;
    s.first = step == 1;
    s.nesterov = n.nesterov;
    s.gradient_factor = static_cast<float>(n.maximize ? -scale : scale);
    s.decay = static_cast<float>(n.weight_decay);
    s.momentum = static_cast<float>(n.momentum);
    s.share = static_cast<float>(1 - n.dampening);
    s.lr = static_cast<float>(n.lr);
    return s;
  }

  // [element]
  /// x: p, the gradient and the momentum buffer.
  template <class X>
  ROOFTILE_TILE static void element(const SgdStep& s, unsigned has, X (&x)[kValues]) {
    X direction = x[kSgdGradient] * s.gradient_factor;
    if (s.decay != 0) direction = fma(x[kSgdParameter], s.decay, direction);
    if (has >> kSgdBuffer & 1) {
      // In the first step the buffer may hold anything: a NaN times 0 would stay.
      X& buffer = x[kSgdBuffer];
      buffer = s.first ? direction : fma(buffer, s.momentum, X(direction * s.share));
      direction = s.nesterov ? fma(buffer, s.momentum, direction) : buffer;
    }
    x[kSgdParameter] = fma(direction, -s.lr, x[kSgdParameter]);
  }
  // [/element]
};

}  // namespace rooftile::kernels
