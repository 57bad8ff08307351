#pragma once
// Activations as lane functions: the element launch, the gated ops and matrix products' epilogues call the
// same ones. Each is written in e = exp(-|…|), which lies in (0, 1]: nothing overflows, and results keep
// their relative accuracy down to the smallest subnormal.
#include "rooftile/tile/elements.h"

namespace rooftile::kernels {
using namespace rooftile::tile;

template <class X>
using LaneType = typename std::decay_t<X>::Lane;
/// Lanes of f64, which CPUs have.
template <class X>
inline constexpr bool kIsWide = sizeof(LaneType<X>) == 8;
/// Where GELU's share of -x has become 0, in its tanh form and in its own.
template <class X>
inline constexpr int kTanhEnd = kIsWide<X> ? 22 : 12;
template <class X>
inline constexpr int kErfEnd = kIsWide<X> ? 39 : 15;

// [sigmoid]
/// 1/(1 + e^-x) = (x < 0 ? e : 1)/(1 + e), e = exp(-|x|).
ROOFTILE_TILE auto sigmoid(const Lanes auto& x) {
  const auto e = exp_below(-abs(x));
  return select(x < 0, e, like(e, 1)) * reciprocal(e + 1);
}
// [/sigmoid]

// [sigmoid_slope]
/// σ'(x) = e/(1 + e)².
ROOFTILE_TILE auto sigmoid_slope(const Lanes auto& x) {
  const auto e = exp_below(-abs(x));
  const auto r = reciprocal(e + 1);
  return e * r * r;
}
// [/sigmoid_slope]

// [tanh]
/// (1 - e)/(1 + e) with x's sign, e = exp(-2|x|); where that would cancel, below 0.55, x + x³·P(x²), minimax
/// (relative error 3.7e-8). And its slope, 4e/(1 + e)².
ROOFTILE_TILE auto tanh_and_slope(const Lanes auto& x) {
  const auto size = abs(x), square = x * x;
  const auto e = exp_below(size * -2);
  const auto r = reciprocal(e + 1), far = (1 - e) * r;
  if constexpr (kIsWide<decltype(far)>) return Pair<std::decay_t<decltype(far)>>{tanh_of(x), e * r * (r * 4)};
  auto p = fma(square, 0x1.0d4f94p-6f, like(x, -0x1.af7ca4p-5f));
  p = fma(p, square, 0x1.10cefp-3f);
  p = fma(p, square, -0x1.555452p-2f);
  const auto near = fma(p * square, x, x);
  const auto y = select(size < 0.55f, near, select(x < 0, -far, far));
  return Pair<std::decay_t<decltype(y)>>{y, e * r * (r * 4)};
}
ROOFTILE_TILE auto tanh(const Lanes auto& x) { return tanh_and_slope(x).first; }
// [/tanh]

/// x within [-limit, limit]; a NaN may come out as a limit.
ROOFTILE_TILE auto clamped(const Lanes auto& x, int limit) { return min(max(x, -limit), limit); }

// GELU's tanh form is x·σ(v), v = 2·√(2/π)·(x + 0.044715·x³).
template <class S>
struct GeluTerms {
  S first = S(1.5957691216057308), third = S(0.07135481627260025);
};

ROOFTILE_TILE auto gelu_exponent(const Lanes auto& x) {
  constexpr GeluTerms<LaneType<decltype(x)>> k;
  return x * fma(x * x, k.third, like(x, k.first));
}

// [gelu_tanh]
/// x·σ(v). Below -12 σ is 0 in f32: the bound makes -∞·0 a 0.
ROOFTILE_TILE auto gelu_tanh(const Lanes auto& x) {
  return max(-kTanhEnd<decltype(x)>, x) * sigmoid(gelu_exponent(x));
}
// [/gelu_tanh]

/// σ(v) + x·σ'(v)·v'.
ROOFTILE_TILE auto gelu_tanh_slope(const Lanes auto& x) {
  const auto v = gelu_exponent(x);
  const auto inner = clamped(x, kTanhEnd<decltype(x)>);  // σ' is 0 beyond, and x² finite
  constexpr GeluTerms<LaneType<decltype(x)>> k;
  const auto slope = fma(inner * inner, 3 * k.third, like(x, k.first));
  return fma(inner * slope, sigmoid_slope(v), sigmoid(v));
}

/// The normal distribution: Φ(x), and e^(-x²/2).
template <Lanes X>
ROOFTILE_TILE auto normal(const X& x) {
  if constexpr (kIsWide<X>) return Pair<X>{erfc_of(x * -0.7071067811865476) * 0.5, exp_below(x * x * -0.5)};
  // [tail]
  // Φ(-|x|) = e^(-x²/2) · t·P(t), t = 1/(1 + 0.35|x|), minimax (relative error 3.2e-8; in f32 2.7e-7).
  const auto e = exp_below(x * x * -0.5f);
  const auto t = reciprocal(fma(abs(x), 0.35f, like(x, 1)));
  auto p = fma(t, -0x1.ddbfbep-6f, like(t, 0x1.26fdd6p-3f));
  p = fma(p, t, -0x1.05ff08p-2f);
  p = fma(p, t, 0x1.46539ap-3f);
  p = fma(p, t, -0x1.7c891cp-6f);
  p = fma(p, t, 0x1.b05e0ep-4f);
  p = fma(p, t, 0x1.eac81cp-4f);
  p = fma(p, t, 0x1.1e70ep-3f);
  p = fma(p, t, 0x1.1df1c4p-3f);
  const auto tail = p * t * e;
  return Pair<std::decay_t<decltype(tail)>>{select(x < 0, tail, 1 - tail), e};
  // [/tail]
}

// [gelu_erf]
/// x·Φ(x). Below -15 Φ is 0 in f32.
template <Lanes X>
ROOFTILE_TILE auto gelu_erf(const X& x) {
  return max(-kErfEnd<X>, x) * normal(x).first;
}
// [/gelu_erf]

// [gelu_slope]
/// Φ(x) + x·φ(x), φ(x) = e^(-x²/2)/√(2π).
template <Lanes X>
ROOFTILE_TILE auto gelu_erf_slope(const X& x) {
  const auto n = normal(x);
  return fma(clamped(x, kErfEnd<X>) * LaneType<X>(0.3989422804014327), n.second, n.first);
}
// [/gelu_slope]

// [silu]
/// x·σ(βx), which is Swish; where σ is 0, 0 for -∞ too.
template <Lanes X>
ROOFTILE_TILE auto silu(const X& x, LaneOption beta) {
  const auto s = sigmoid(x * beta);
  return select(s > 0, x * s, s);
}
// [/silu]

// [silu_slope]
/// σ(βx) + βx·σ'(βx).
template <Lanes X>
ROOFTILE_TILE auto silu_slope(const X& x, LaneOption beta) {
  const auto v = x * beta;
  return fma(clamped(v, kIsWide<X> ? 760 : 120), sigmoid_slope(v), sigmoid(v));
}
// [/silu_slope]

/// max(x, 0), and of a NaN a NaN.
ROOFTILE_TILE auto relu(const Lanes auto& x) { return select(x <= 0, like(x, 0), x); }

}  // namespace rooftile::kernels
