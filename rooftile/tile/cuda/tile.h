#pragma once
// A tile on NVIDIA GPUs: one lane to a thread, and the same arithmetic on it as on the CPU
// (rooftile/tile/cpu/tile.h). Simple bodies, for now: see team.h.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "rooftile/core/dtype.h"

#define ROOFTILE_TILE __device__ __forceinline__
#define ROOFTILE_INLINE  // lambdas of a device function are inlined anyway

namespace rooftile::tile {
inline namespace cuda {

/// The signed integer of a lane's width: what indices are made of.
template <class S>
using IntegerOf = std::conditional_t<sizeof(S) == 8, std::int64_t, std::int32_t>;

/// This thread's lane.
template <class S>
struct Tile {
  using Lane = S;
  S v;
};
template <class S>
struct Mask {
  bool v;
};

template <class S>
ROOFTILE_TILE Tile<S> fill(S value) {
  return {value};
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

/// An operand as a tile: tiles and places as they are, scalars in every lane.
template <class S, class A>
ROOFTILE_TILE Tile<S> operand(const A& a) {
  if constexpr (Lanes<A>) {
    static_assert(std::is_same_v<typename A::Lane, S>,
                  "rooftile::tile: both operands need lanes of one type; convert one");
    return a;
  } else {
    return {static_cast<S>(a)};
  }
}

#define ROOFTILE_BINARY(function, Result, expression)                                                   \
  template <class A, class B>                                                                           \
  requires(Lanes<A> || Lanes<B>) ROOFTILE_TILE Result<typename LaneOf<A, B>::type> function(A a, B b) { \
    using S = typename LaneOf<A, B>::type;                                                              \
    const S x = operand<S>(a).v, y = operand<S>(b).v;                                                   \
    return {expression};                                                                                \
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
// Where one operand is NaN, max and min give the second, as the CPU's instructions do (fmaxf would drop it).
ROOFTILE_BINARY(max, Tile, x > y ? x : y)
ROOFTILE_BINARY(min, Tile, x < y ? x : y)
// clang-format on
#undef ROOFTILE_BINARY

template <Lanes A>
ROOFTILE_TILE Tile<typename A::Lane> operator-(A a) {
  return {-operand<typename A::Lane>(a).v};
}
template <Lanes A>
ROOFTILE_TILE Tile<typename A::Lane> sqrt(A a) {
  using S = typename A::Lane;
  if constexpr (std::is_same_v<S, float>)
    return {__fsqrt_rn(operand<S>(a).v)};
  else
    return {__dsqrt_rn(operand<S>(a).v)};
}
template <Lanes A>
ROOFTILE_TILE Tile<typename A::Lane> abs(A a) {
  using S = typename A::Lane;
  const S x = operand<S>(a).v;
  if constexpr (std::is_floating_point_v<S>)
    return {::fabs(x)};
  else
    return {x < 0 ? -x : x};
}

template <class S>
ROOFTILE_TILE Tile<S> operator<<(Tile<S> a, int bits) {
  return {a.v << bits};
}
template <class S>
ROOFTILE_TILE Tile<S> operator>>(Tile<S> a, int bits) {
  return {a.v >> bits};
}
template <class S>
ROOFTILE_TILE Mask<S> operator&(Mask<S> a, Mask<S> b) {
  return {a.v && b.v};
}
template <class S>
ROOFTILE_TILE Mask<S> operator|(Mask<S> a, Mask<S> b) {
  return {a.v || b.v};
}
template <class S>
ROOFTILE_TILE Mask<S> operator!(Mask<S> a) {
  return {!a.v};
}
/// a where the mask holds, b elsewhere.
template <class M, class S>
ROOFTILE_TILE Tile<S> select(Mask<M> mask, Tile<S> a, Tile<S> b) {
  static_assert(sizeof(M) == sizeof(S),
                "rooftile::tile::select: mask and values must have lanes of one width");
  return mask.v ? a : b;
}

template <class S, class B>
ROOFTILE_TILE Tile<S>& operator+=(Tile<S>& a, B b) {
  return a = a + b;
}
template <class S, class B>
ROOFTILE_TILE Tile<S>& operator*=(Tile<S>& a, B b) {
  return a = a * b;
}

/// a · b + c, rounded once.
template <Lanes A, class B, class C>
ROOFTILE_TILE Tile<typename A::Lane> fma(A a, B b, C c) {
  using S = typename A::Lane;
  const S x = operand<S>(a).v, y = operand<S>(b).v, z = operand<S>(c).v;
  if constexpr (std::is_same_v<S, float>)
    return {__fmaf_rn(x, y, z)};
  else
    return {__fma_rn(x, y, z)};
}

/// To another type of the same width: integers to floats, rounded; floats to integers, toward zero.
template <class To, class From>
ROOFTILE_TILE Tile<To> convert(Tile<From> a) {
  static_assert(sizeof(To) == sizeof(From), "rooftile::tile::convert: lanes of one width only");
  return {static_cast<To>(a.v)};
}
/// The same bits as another type of the same width.
template <class To, class From>
ROOFTILE_TILE Tile<To> bit_cast(Tile<From> a) {
  static_assert(sizeof(To) == sizeof(From), "rooftile::tile::bit_cast: lanes of one width only");
  Tile<To> r;
  memcpy(&r.v, &a.v, sizeof(To));
  return r;
}

template <Lanes A>
ROOFTILE_TILE Tile<float> exp(A a) {
  return {::expf(operand<float>(a).v)};
}
/// For arguments up to 89.
template <Lanes A>
ROOFTILE_TILE Tile<float> exp_below(A a) {
  return exp(a);
}

/// Scalars, one to a program.
ROOFTILE_TILE
float log(float x) { return ::logf(x); }
ROOFTILE_TILE
float exp(float x) { return ::expf(x); }
ROOFTILE_TILE
float sqrt(float x) { return __fsqrt_rn(x); }
ROOFTILE_TILE
double sqrt(double x) { return __dsqrt_rn(x); }

/// An element of memory as a lane, and back, rounded to nearest.
template <class S, class T>
ROOFTILE_TILE S widen(T x) {
  if constexpr (std::is_same_v<T, f16>)
    return __half2float(__ushort_as_half(x.bits));
  else if constexpr (std::is_same_v<T, bf16>)
    return __uint_as_float(static_cast<unsigned>(x.bits) << 16);
  else
    return static_cast<S>(x);
}
template <class T, class S>
ROOFTILE_TILE T narrow(S x) {
  if constexpr (std::is_same_v<T, f16>)
    return {__half_as_ushort(__float2half_rn(x))};
  else if constexpr (std::is_same_v<T, bf16>)
    return {__bfloat16_as_ushort(__float2bfloat16_rn(x))};
  else
    return static_cast<T>(x);
}

}  // namespace cuda
}  // namespace rooftile::tile
