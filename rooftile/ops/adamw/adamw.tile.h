#pragma once
// Each element by itself: five numbers are read, four written, and one division and one root lie between.
// What all elements share, the bias corrections above all, is computed once in f64.
#include "rooftile/ops/adamw/adamw.problem.h"
#include "rooftile/tile/tile.h"

namespace rooftile::kernels {
using namespace rooftile::tile;

/// What a step's elements share.
struct AdamwStep {
  bool skips;  ///< an overflow was found
  bool l2;
  float gradient_factor, decay, towards_gradient, towards_square, size, root_factor, eps;
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
  s.towards_gradient = static_cast<float>(1 - n.beta1);  // of f32 betas, 1 - 0.999 would be off by 1e-5
  s.towards_square = static_cast<float>(1 - n.beta2);
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
/// One element. The means move towards what is new by a share of the difference: m and v then rest where m =
/// g and v = g², however 1 - beta is rounded.
template <class X>
ROOFTILE_TILE AdamwElement<X> adamw_element(const AdamwStep& s, bool amsgrad, AdamwElement<X> x, X g) {
  g = g * s.gradient_factor;
  if (s.l2) g = fma(x.p, s.decay, g);
  x.m = fma(g - x.m, s.towards_gradient, x.m);
  x.v = fma(g * g - x.v, s.towards_square, x.v);
  x.max_v = amsgrad ? select(x.v <= x.max_v, x.max_v, x.v) : x.v;
  const X step = x.m * s.size / fma(sqrt(x.max_v), s.root_factor, like(g, s.eps));
  x.p = x.p - (s.l2 ? step : fma(x.p, s.decay, step));
  return x;
}
// [/element]

}  // namespace rooftile::kernels
