#pragma once
// A tile: four vectors of lanes, and lane-by-lane arithmetic on it. Four, because one vector at a time leaves
// the adders waiting for their own results (latency 4 cycles, two adders) and eight spill registers on AVX2.
#include <limits>
#include <type_traits>
#include <utility>

#include "rooftile/tile/cpu/vector.h"
#include "rooftile/tile/split_scale.h"

namespace rooftile::tile {
inline namespace ROOFTILE_ISA {

inline constexpr int kVectors = 4;

/// kVectors · kVecLanes<S> lanes of S.
template <class S>
struct Tile {
  using Lane = S;
  Vec<S> v[kVectors];
};
/// One truth value for each lane of a Tile<S>.
template <class S>
struct Mask {
  Vec<IntegerOf<S>> v[kVectors];
};
template <class S>
inline constexpr int kLanes = kVectors* kVecLanes<S>;

/// A statement for each vector i of a tile, written out: a loop would have to be unrolled in every place that
/// it is inlined to, and its tiles be found to be registers there (a third of the time to compile).
#define ROOFTILE_EACH_VECTOR(...) \
  do {                            \
    static_assert(kVectors == 4); \
    {                             \
      constexpr int i = 0;        \
      __VA_ARGS__;                \
    }                             \
    {                             \
      constexpr int i = 1;        \
      __VA_ARGS__;                \
    }                             \
    {                             \
      constexpr int i = 2;        \
      __VA_ARGS__;                \
    }                             \
    {                             \
      constexpr int i = 3;        \
      __VA_ARGS__;                \
    }                             \
  } while (false)

template <class S>
ROOFTILE_TILE Tile<S> fill(S value) {
  Tile<S> r;
  ROOFTILE_EACH_VECTOR(r.v[i] = splat<S>(value));
  return r;
}

/// A tile, or a place in a scratch row that holds one.
template <class A>
concept Lanes = requires {
  typename A::Lane;
};
template <class A, class B>
struct LaneOf {};
template <Lanes A, class B>
struct LaneOf<A, B> {
  using type = typename A::Lane;
};
template <class A, Lanes B>
requires(!Lanes<A>) struct LaneOf<A, B> {
  using type = typename B::Lane;
};

/// A tile whose vectors are all one.
template <class S>
struct Same {
  struct {
    Vec<S> one;
    ROOFTILE_TILE Vec<S> operator[](int) const { return one; }
  } v;
};

/// An operand, to take vectors from: tiles as they are, places loaded, scalars in every lane.
template <class S, class A>
ROOFTILE_TILE decltype(auto) operand(const A& a) {
  if constexpr (Lanes<A>) {
    static_assert(std::is_same_v<typename A::Lane, S>,
                  "rooftile::tile: both operands need lanes of one type; convert one");
    return static_cast<std::conditional_t<std::is_same_v<A, Tile<S>>, const Tile<S>&, Tile<S>>>(a);
  } else {
    return Same<S>{{splat<S>(static_cast<S>(a))}};
  }
}

#define ROOFTILE_BINARY(function, Result, expression)                                                     \
  template <class A, class B>                                                                             \
  requires(Lanes<A> || Lanes<B>) ROOFTILE_TILE Result<typename LaneOf<A, B>::type> function(const A& a,   \
                                                                                            const B& b) { \
    using S = typename LaneOf<A, B>::type;                                                                \
    const auto& left = operand<S>(a);                                                                     \
    const auto& right = operand<S>(b);                                                                    \
    Result<S> r;                                                                                          \
    ROOFTILE_EACH_VECTOR(const Vec<S> x = left.v[i]; const Vec<S> y = right.v[i]; r.v[i] = expression;);  \
    return r;                                                                                             \
  }
// clang-format off
ROOFTILE_BINARY(operator+, Tile, x + y)
ROOFTILE_BINARY(operator-, Tile, x - y)
ROOFTILE_BINARY(operator*, Tile, x * y)
ROOFTILE_BINARY(operator/, Tile, x / y)
ROOFTILE_BINARY(operator&, Tile, x & y)
ROOFTILE_BINARY(operator|, Tile, x | y)
ROOFTILE_BINARY(operator^, Tile, x ^ y)
ROOFTILE_BINARY(operator<, Mask, x < y)
ROOFTILE_BINARY(operator<=, Mask, x <= y)
ROOFTILE_BINARY(operator>, Mask, x > y)
ROOFTILE_BINARY(operator>=, Mask, x >= y)
ROOFTILE_BINARY(operator==, Mask, x == y)
ROOFTILE_BINARY(operator!=, Mask, x != y)
// Where one operand is NaN, max and min give the second; the sum behind a maximum keeps the NaN.
ROOFTILE_BINARY(max, Tile, vmax(x, y))
ROOFTILE_BINARY(min, Tile, vmin(x, y))
// clang-format on
#undef ROOFTILE_BINARY

template <class S>
ROOFTILE_TILE Vec<S> magnitude(Vec<S> x) {
  if constexpr (std::is_integral_v<S>)
    return x < 0 ? -x : x;
  else
    return (Vec<S>)((Vec<IntegerOf<S>>)x & std::numeric_limits<IntegerOf<S>>::max());
}

#define ROOFTILE_UNARY(function, expression)                               \
  template <Lanes A>                                                       \
  ROOFTILE_TILE Tile<typename A::Lane> function(const A& a) {              \
    using S = typename A::Lane;                                            \
    const auto& all = operand<S>(a);                                       \
    Tile<S> r;                                                             \
    ROOFTILE_EACH_VECTOR(const Vec<S> x = all.v[i]; r.v[i] = expression;); \
    return r;                                                              \
  }
ROOFTILE_UNARY(operator-, -x)
ROOFTILE_UNARY(sqrt, vsqrt(x))
ROOFTILE_UNARY(abs, magnitude<S>(x))

template <class S>
ROOFTILE_TILE Tile<S> operator<<(Tile<S> a, int bits) {
  ROOFTILE_EACH_VECTOR(a.v[i] = a.v[i] << bits);
  return a;
}
template <class S>
ROOFTILE_TILE Tile<S> operator>>(Tile<S> a, int bits) {
  ROOFTILE_EACH_VECTOR(a.v[i] = a.v[i] >> bits);
  return a;
}
template <class S>
ROOFTILE_TILE Mask<S> operator&(Mask<S> a, Mask<S> b) {
  ROOFTILE_EACH_VECTOR(a.v[i] = a.v[i] & b.v[i]);
  return a;
}
template <class S>
ROOFTILE_TILE Mask<S> operator|(Mask<S> a, Mask<S> b) {
  ROOFTILE_EACH_VECTOR(a.v[i] = a.v[i] | b.v[i]);
  return a;
}
template <class S>
ROOFTILE_TILE Mask<S> operator!(Mask<S> a) {
  ROOFTILE_EACH_VECTOR(a.v[i] = ~a.v[i]);
  return a;
}
/// a where the mask holds, b elsewhere. A mask of floats selects integers of their width, too.
template <class M, class S>
ROOFTILE_TILE Tile<S> select(const Mask<M>& mask, const Tile<S>& a, const Tile<S>& b) {
  static_assert(sizeof(M) == sizeof(S),
                "rooftile::tile::select: mask and values must have lanes of one width");
  Tile<S> r;
  ROOFTILE_EACH_VECTOR(r.v[i] = mask.v[i] ? a.v[i] : b.v[i]);
  return r;
}

template <class S, class B>
ROOFTILE_TILE Tile<S>& operator+=(Tile<S>& a, const B& b) {
  return a = a + b;
}
template <class S, class B>
ROOFTILE_TILE Tile<S>& operator*=(Tile<S>& a, const B& b) {
  return a = a * b;
}

/// a · b + c, rounded once where the instruction set has a fused multiply-add (baseline: twice). The only way
/// to get one: the compiler never contracts a product and a sum by itself.
template <Lanes A, class B, class C>
ROOFTILE_TILE Tile<typename A::Lane> fma(const A& a, const B& b, const C& c) {
  using S = typename A::Lane;
  const auto& x = operand<S>(a);
  const auto& y = operand<S>(b);
  const auto& z = operand<S>(c);
  Tile<S> r;
  ROOFTILE_EACH_VECTOR(r.v[i] = vfma(x.v[i], y.v[i], z.v[i]));
  return r;
}

/// Lane by lane to another type of the same width: integers to floats, rounded; floats to integers, toward
/// zero.
template <class To, class From>
ROOFTILE_TILE Tile<To> convert(const Tile<From>& a) {
  static_assert(sizeof(To) == sizeof(From), "rooftile::tile::convert: lanes of one width only");
  Tile<To> r;
  ROOFTILE_EACH_VECTOR(r.v[i] = __builtin_convertvector(a.v[i], Vec<To>));
  return r;
}
/// The same bits as another type of the same width.
template <class To, class From>
ROOFTILE_TILE Tile<To> bit_cast(const Tile<From>& a) {
  static_assert(sizeof(To) == sizeof(From), "rooftile::tile::bit_cast: lanes of one width only");
  Tile<To> r;
  ROOFTILE_EACH_VECTOR(r.v[i] = (Vec<To>)a.v[i]);
  return r;
}

#undef ROOFTILE_UNARY

/// e^x for -104 ≤ x ≤ 89 or NaN. x = n·ln 2 + r, e^x = 2^n · e^r; n comes from adding a number whose last bit
/// weighs as much as the wanted step, ln 2 in two parts, of which the first times n is exact.
///
/// Written step by step over the whole tile, so that four chains of dependent operations stand interleaved in
/// the program: one vector after another fills the scheduler and costs a fifth (6.0 against 5.2 cycles a
/// vector, Zen 5).
template <class S>
ROOFTILE_TILE Tile<S> exp_in_range(const Tile<S>& x) {
  constexpr float kLog2E = 0x1.715476p0f, kLn2High = 0x1.62e4p-1f, kLn2Low = 0x1.7f7d1cp-20f;
  static_assert(std::is_same_v<S, float>, "rooftile::tile::exp: float tiles only");
  Tile<S> p, n;
  if constexpr (kHasLookup) {
    // Steps of 1/32: 2^(j/32) from a table in two registers, e^r by 1 + c1·r + r²/2, minimax on ±ln 2 / 64
    // (5.3e-8). Three operations fewer on the multipliers, which bind: 4.6 cycles a vector.
    constexpr float kMagic = 0x1.8p18f;
    static constexpr float kTable[32] = {
        0x1p0f,        0x1.059b0ep0f, 0x1.0b5586p0f, 0x1.11301ep0f, 0x1.172b84p0f, 0x1.1d4874p0f,
        0x1.2387a6p0f, 0x1.29e9ep0f,  0x1.306fep0f,  0x1.371a74p0f, 0x1.3dea64p0f, 0x1.44e086p0f,
        0x1.4bfdaep0f, 0x1.5342b6p0f, 0x1.5ab07ep0f, 0x1.6247ecp0f, 0x1.6a09e6p0f, 0x1.71f75ep0f,
        0x1.7a1148p0f, 0x1.82589ap0f, 0x1.8ace54p0f, 0x1.93737cp0f, 0x1.9c4918p0f, 0x1.a5503cp0f,
        0x1.ae89fap0f, 0x1.b7f77p0f,  0x1.c199bep0f, 0x1.cb720ep0f, 0x1.d5818ep0f, 0x1.dfc974p0f,
        0x1.ea4afap0f, 0x1.f50766p0f};
    const Tile<S> shifted = fma(x, kLog2E, kMagic);
    n = shifted - kMagic;
    Tile<S> r = fma(n, -kLn2High, x);
    r = fma(n, -kLn2Low, r);
    const Tile<S> q = fma(r, 0.5f, 0x1.0000f6p0f) * r;
    Tile<S> power;
    ROOFTILE_EACH_VECTOR(power.v[i] = vlookup(kTable, (Vec<std::int32_t>)shifted.v[i]));
    p = fma(power, q, power);
  } else {
    // Steps of 1: e^r by 1 + r + r²·(c2 + c3·r + c4·r² + c5·r³), minimax on ±ln 2 / 2 (1.06e-7).
    constexpr float kMagic = 0x1.8p23f;
    n = fma(x, kLog2E, kMagic) - kMagic;
    Tile<S> r = fma(n, -kLn2High, x);
    r = fma(n, -kLn2Low, r);
    p = fma(r, 0x1.1062500p-7f, 0x1.572a64p-5f);
    p = fma(p, r, 0x1.5557bp-3f);
    p = fma(p, r, 0x1.fffdfcp-2f);
    p = fma(p, r, 1);
    p = fma(p, r, 1);
  }
  ROOFTILE_EACH_VECTOR(p.v[i] = vscale(p.v[i], n.v[i]));
  return p;
}

/// The same of doubles, -746 ≤ x ≤ 710: r's series up to r^13 / 13!, which ends below 2^-57. A call: it is
/// long, and doubles come for their digits.
__attribute__((noinline)) inline Tile<double> exp_in_range(const Tile<double>& x) {
  constexpr double kMagic = 0x1.8p52, kLn2High = 0x1.62e42feep-1, kLn2Low = 0x1.a39ef35793c76p-33;
  static constexpr double kSeries[] = {
      1. / 479001600, 1. / 39916800, 1. / 3628800, 1. / 362880, 1. / 40320, 1. / 5040, 1. / 720,
      1. / 120,       1. / 24,       1. / 6,       1. / 2,      1,          1};
  const Tile<double> shifted = fma(x, 0x1.71547652b82fep0, kMagic);
  const Tile<double> n = shifted - kMagic, r = fma(n, -kLn2Low, fma(n, -kLn2High, x));
  Tile<double> p = fill(1. / 6227020800);
  for (const double coefficient : kSeries) p = fma(p, r, coefficient);
  // In two steps, because 2^n itself may not be a normal number.
  const Tile<std::int64_t> whole = bit_cast<std::int64_t>(shifted) - bit_cast<std::int64_t>(fill(kMagic));
  const Tile<std::int64_t> half = whole >> 1;
  return p * bit_cast<double>((half + 1023) << 52) * bit_cast<double>((whole - half + 1023) << 52);
}

/// e^x, relative error below 2e-7; 0 below -103.98, infinity above 88.73, NaN for NaN; subnormal results are
/// right. Of doubles below 3e-16; 0 below -745.14, infinity above 709.79.
template <Lanes A>
ROOFTILE_TILE Tile<typename A::Lane> exp(const A& a) {
  constexpr bool kWide = sizeof(typename A::Lane) == 8;
  // In this order of operands a NaN passes both.
  return exp_in_range(min(kWide ? 710 : 89, max(kWide ? -746 : -104, a)));
}
/// The same for x ≤ 89 (of doubles 710), which a maximum subtracted before gives: one operation in fourteen
/// less.
template <Lanes A>
ROOFTILE_TILE Tile<typename A::Lane> exp_below(const A& a, bool = true) {
  return exp_in_range(max(sizeof(typename A::Lane) == 8 ? -746 : -104, a));
}
/// e^(a · scale.rest) for a difference from a row's largest, as SplitScale has it.
template <Lanes A>
ROOFTILE_TILE Tile<typename A::Lane> exp_below(const A& a, const SplitScaleOf<typename A::Lane>& scale,
                                               bool = true) {
  return exp_below(a * scale.rest);
}

/// sum / count; `each_one`, 1 / count, is a GPU's, which has no division.
template <class Real>
ROOFTILE_TILE Real quotient(Real sum, Real count, [[maybe_unused]] Real each_one) {
  return sum / count;
}
/// 1/x for 2^-126 ≤ |x| ≤ 2^126; on a GPU off by at most one ulp.
template <Lanes A>
ROOFTILE_TILE Tile<typename A::Lane> reciprocal(const A& a) {
  return 1 / a;
}
/// tanh(x) and erfc(x) of doubles, by the C library, lane by lane.
__attribute__((noinline)) inline Tile<double> lane_by_lane(Tile<double> x, double (*f)(double)) {
  for (int k = 0; k < kLanes<double>; ++k) {
    const int v = k / kVecLanes<double>, lane = k % kVecLanes<double>;
    x.v[v][lane] = f(x.v[v][lane]);
  }
  return x;
}
inline Tile<double> tanh_of(const Tile<double>& x) {
  return lane_by_lane(x, [](double v) { return __builtin_tanh(v); });
}
inline Tile<double> erfc_of(const Tile<double>& x) {
  return lane_by_lane(x, [](double v) { return __builtin_erfc(v); });
}
/// `value` in as many lanes as `a` has.
template <Lanes A>
ROOFTILE_TILE Tile<typename A::Lane> like(const A&, typename A::Lane value) {
  return fill<typename A::Lane>(value);
}

/// Scalars, one to a program.
ROOFTILE_TILE float log(float x) { return __builtin_logf(x); }
ROOFTILE_TILE double log(double x) { return __builtin_log(x); }
ROOFTILE_TILE float exp(float x) { return __builtin_expf(x); }
ROOFTILE_TILE double exp(double x) { return __builtin_exp(x); }
ROOFTILE_TILE float sqrt(float x) { return __builtin_sqrtf(x); }
ROOFTILE_TILE float rsqrt(float x) { return 1 / sqrt(x); }
ROOFTILE_TILE double sqrt(double x) { return __builtin_sqrt(x); }
ROOFTILE_TILE double rsqrt(double x) { return 1 / sqrt(x); }

/// 0, 1, 2, …: the index of each lane of vector 0.
template <class I, std::size_t... kLane>
ROOFTILE_TILE constexpr Vec<I> lane_indices(std::index_sequence<kLane...>) {
  return Vec<I>{static_cast<I>(kLane)...};
}

// Across the lanes, by halves: one fixed tree.
#define ROOFTILE_REDUCE(function, operation)                                                          \
  template <class S>                                                                                  \
  ROOFTILE_TILE S function(const Tile<S>& t) {                                                        \
    const Vec<S> v = operation(operation(t.v[0], t.v[1]), operation(t.v[2], t.v[3]));                 \
    return reduce_halves<S, kVecLanes<S> / 2>(                                                        \
        v, [](auto a, auto b) { return operation(a, b); }, std::make_index_sequence<kVecLanes<S>>()); \
  }
template <class V>
ROOFTILE_TILE V vadd(V a, V b) {
  return a + b;
}
template <class V>
ROOFTILE_TILE V vmultiply(V a, V b) {
  return a * b;
}
/// The upper `kHalf` of 2 · kHalf lanes folded onto the lower ones, and so on down to one lane.
template <class S, int kHalf, class F, std::size_t... I>
ROOFTILE_TILE S reduce_halves(Vec<S> v, F operation, std::index_sequence<I...> lanes) {
  // The order as a constant: a loop that fills it costs a store and a stalled load for each step.
  v = operation(v, __builtin_shufflevector(v, v, ((I + kHalf) % sizeof...(I))...));
  if constexpr (kHalf > 1) return reduce_halves<S, kHalf / 2>(v, operation, lanes);
  return v[0];
}
ROOFTILE_REDUCE(reduce_sum, vadd)
ROOFTILE_REDUCE(reduce_product, vmultiply)
ROOFTILE_REDUCE(reduce_max, vmax)
ROOFTILE_REDUCE(reduce_min, vmin)
#undef ROOFTILE_REDUCE

}  // namespace ROOFTILE_ISA
}  // namespace rooftile::tile
