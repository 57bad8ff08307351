#pragma once
// Each element by itself: five numbers are read, four written, and one division and one root lie between.
// What all elements share, the bias corrections above all, is computed once in f64.
#include "rooftile/ops/adamw/adamw.problem.h"
#include "rooftile/tile/lists.h"

namespace rooftile::kernels {
using namespace rooftile::tile;

/// What a step's elements share.
struct AdamwStep {
  bool skips;  ///< an overflow was found
  bool l2;
  float gradient_factor, decay, size, root_factor, eps;
  struct Mean {
    float beta, share;  ///< 1 - beta
  } m, v;
};

/// beta^t by squaring: at most 126 roundings of f64.
ROOFTILE_TILE double adamw_power(double beta, std::int64_t t) {
  double power = 1;
  for (; t > 0; t >>= 1, beta *= beta)
    if (t & 1) power *= beta;
  return power;
}

/// Counts the step, and computes what its elements share. Called once for each call.
ROOFTILE_TILE AdamwStep adamw_step(const AdamwNumbers& n) {
  AdamwStep s{};
  s.skips = n.found_inf && *n.found_inf != 0;
  if (s.skips) return s;
  std::int64_t t = n.step;
  if (n.steps) {
    t = *n.steps + 1;
    *n.steps = t;
    if (t < 1) t = 1;  // a counter that holds no count
  }
  const double scale = n.gradient_scale ? static_cast<double>(*n.gradient_scale) : 1;
  s.gradient_factor = static_cast<float>(n.maximize ? -scale : scale);
  s.l2 = n.l2 && n.weight_decay != 0;
  s.decay = static_cast<float>(n.l2 ? n.weight_decay : n.lr * n.weight_decay);
  // From f64: of an f32 0.999 the share would be off by 1e-5.
  s.m = {static_cast<float>(n.beta1), static_cast<float>(1 - n.beta1)};
  s.v = {static_cast<float>(n.beta2), static_cast<float>(1 - n.beta2)};
  s.size = static_cast<float>(n.lr / (1 - adamw_power(n.beta1, t)));
  s.root_factor = static_cast<float>(1 / sqrt(1 - adamw_power(n.beta2, t)));
  s.eps = static_cast<float>(n.eps);
  return s;
}

// [element]
template <class X>
struct AdamwElement {
  X p, m, v, max_v;
};
/// beta · mean + (1 - beta) · x as a step from the nearer one: it rests where mean = x, however beta is
/// rounded.
template <class X>
ROOFTILE_TILE X adamw_mean(const AdamwStep::Mean& s, const X& mean, const X& x) {
  return s.share < 0.5f ? fma(x - mean, s.share, mean) : fma(mean - x, s.beta, x);
}
template <class X>
ROOFTILE_TILE AdamwElement<X> adamw_element(const AdamwStep& s, bool amsgrad, AdamwElement<X> x, X g) {
  g = g * s.gradient_factor;
  if (s.l2) g = fma(x.p, s.decay, g);
  x.m = adamw_mean(s.m, x.m, g);
  x.v = adamw_mean(s.v, x.v, X(g * g));
  x.max_v = amsgrad ? select(x.v <= x.max_v, x.max_v, x.v) : x.v;
  const X step = x.m * s.size / fma(sqrt(x.max_v), s.root_factor, like(g, s.eps));
  x.p = x.p - (s.l2 ? step : fma(x.p, s.decay, step));
  return x;
}
// [/element]

struct Adamw {
  using Numbers = AdamwNumbers;
  using Shared = AdamwStep;
  static constexpr int kValues = kAdamwMaster;
  static constexpr bool kMaster = true;
  static constexpr unsigned kWritten = ~(1u << kAdamwGradient);
  ROOFTILE_TILE static Shared begin(const Numbers& n) { return adamw_step(n); }
  template <class X>
  ROOFTILE_TILE static void element(const Shared& s, unsigned has, X (&x)[kValues]) {
    const AdamwElement<X> y = adamw_element(
        s, (has >> kAdamwMaxV & 1) != 0,
        AdamwElement<X>{x[kAdamwParameter], x[kAdamwM], x[kAdamwV], x[kAdamwMaxV]}, x[kAdamwGradient]);
    x[kAdamwParameter] = y.p;
    x[kAdamwM] = y.m;
    x[kAdamwV] = y.v;
    x[kAdamwMaxV] = y.max_v;
  }
};

}  // namespace rooftile::kernels
