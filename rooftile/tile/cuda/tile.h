#pragma once
// A tile on NVIDIA GPUs: this thread's lanes of a team's chunk, and the same arithmetic on them as on the CPU
// (rooftile/tile/cpu/tile.h).
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "rooftile/backend/cuda/ptx.h"
#include "rooftile/backend/cuda/unroll.h"
#include "rooftile/core/dtype.h"
#include "rooftile/tile/split_scale.h"

#define ROOFTILE_INLINE  // lambdas of a device function are inlined anyway
#if defined(ROOFTILE_EMULATED)
#define ROOFTILE_TILE inline
#else
#define ROOFTILE_TILE __device__ __forceinline__
#endif

namespace rooftile::tile {
inline namespace cuda {

/// The signed integer of a lane's width: what indices are made of.
template <class S>
using IntegerOf = std::conditional_t<sizeof(S) == 8, std::int64_t, std::int32_t>;

/// N neighbouring lanes of one thread.
template <class S, int N>
struct Tile {
  using Lane = S;
  static constexpr int kLanes = N;
  S v[N];
};
template <int N>
struct Mask {
  bool v[N];
};

/// A tile, or a place that holds one.
template <class A>
concept Lanes = requires {
  typename A::Lane;
};
template <class A, class B>
struct TileOf {};
template <Lanes A, class B>
struct TileOf<A, B> {
  using type = Tile<typename A::Lane, A::kLanes>;
};
template <class A, Lanes B>
requires(!Lanes<A>) struct TileOf<A, B> {
  using type = Tile<typename B::Lane, B::kLanes>;
};
template <class A, class B = void>
using TileOfT = typename TileOf<A, B>::type;

#define ROOFTILE_EACH_LANE(N) ROOFTILE_UNROLL for (int i = 0; i < (N); ++i)

/// An operand as a tile: tiles as they are, scalars in every lane.
template <class T, class A>
ROOFTILE_TILE T operand(const A& a) {
  if constexpr (Lanes<A>) {
    static_assert(std::is_same_v<typename A::Lane, typename T::Lane>,
                  "rooftile::tile: both operands need lanes of one type; convert one");
    return a;
  } else {
    T r;
    ROOFTILE_EACH_LANE(T::kLanes) r.v[i] = static_cast<typename T::Lane>(a);
    return r;
  }
}

/// One instruction for floats; a comparison and a choice would be two.
template <class S>
ROOFTILE_TILE S larger(S x, S y) {
  if constexpr (std::is_same_v<S, float>)
    return fmaxf(x, y);
  else
    return x > y ? x : y;
}
template <class S>
ROOFTILE_TILE S smaller(S x, S y) {
  if constexpr (std::is_same_v<S, float>)
    return fminf(x, y);
  else
    return x < y ? x : y;
}

#define ROOFTILE_BINARY(function, Result, expression)                                  \
  template <class A, class B>                                                          \
  requires(Lanes<A> || Lanes<B>) ROOFTILE_TILE auto function(const A& a, const B& b) { \
    using T = TileOfT<A, B>;                                                           \
    using S = typename T::Lane;                                                        \
    const T left = operand<T>(a), right = operand<T>(b);                               \
    Result r;                                                                          \
    ROOFTILE_EACH_LANE(T::kLanes) {                                                    \
      const S x = left.v[i], y = right.v[i];                                           \
      r.v[i] = expression;                                                             \
    }                                                                                  \
    return r;                                                                          \
  }
#define ROOFTILE_TRUTH Mask<T::kLanes>
// clang-format off
ROOFTILE_BINARY(operator+, T, x + y)
ROOFTILE_BINARY(operator-, T, x - y)
ROOFTILE_BINARY(operator*, T, x * y)
ROOFTILE_BINARY(operator/, T, x / y)
ROOFTILE_BINARY(operator&, T, x & y)
ROOFTILE_BINARY(operator|, T, x | y)
ROOFTILE_BINARY(operator^, T, x ^ y)
ROOFTILE_BINARY(operator<, ROOFTILE_TRUTH, x < y)
ROOFTILE_BINARY(operator<=, ROOFTILE_TRUTH, x <= y)
ROOFTILE_BINARY(operator>, ROOFTILE_TRUTH, x > y)
ROOFTILE_BINARY(operator>=, ROOFTILE_TRUTH, x >= y)
ROOFTILE_BINARY(operator==, ROOFTILE_TRUTH, x == y)
ROOFTILE_BINARY(operator!=, ROOFTILE_TRUTH, x != y)
// Where one operand is NaN, max and min give the other one; the sum behind a maximum keeps the NaN.
ROOFTILE_BINARY(max, T, larger(x, y))
ROOFTILE_BINARY(min, T, smaller(x, y))
// clang-format on
#undef ROOFTILE_BINARY
#undef ROOFTILE_TRUTH

ROOFTILE_TILE
float root(float x) { return __fsqrt_rn(x); }
ROOFTILE_TILE
double root(double x) { return __dsqrt_rn(x); }
ROOFTILE_TILE
float fused(float x, float y, float z) { return __fmaf_rn(x, y, z); }
ROOFTILE_TILE
double fused(double x, double y, double z) { return __fma_rn(x, y, z); }
template <class S>
ROOFTILE_TILE S magnitude(S x) {
  if constexpr (std::is_same_v<S, float>)
    return fabsf(x);
  else if constexpr (std::is_same_v<S, double>)
    return fabs(x);
  else
    return x < 0 ? -x : x;
}

#define ROOFTILE_UNARY(function, expression)      \
  template <Lanes A>                              \
  ROOFTILE_TILE TileOfT<A> function(const A& a) { \
    TileOfT<A> r = a;                             \
    ROOFTILE_EACH_LANE(A::kLanes) {               \
      const typename A::Lane x = r.v[i];          \
      r.v[i] = expression;                        \
    }                                             \
    return r;                                     \
  }
ROOFTILE_UNARY(operator-, -x)
ROOFTILE_UNARY(sqrt, root(x))
ROOFTILE_UNARY(abs, magnitude(x))
#undef ROOFTILE_UNARY

template <class S, int N>
ROOFTILE_TILE Tile<S, N> operator<<(Tile<S, N> a, int bits) {
  ROOFTILE_EACH_LANE(N) a.v[i] = a.v[i] << bits;
  return a;
}
template <class S, int N>
ROOFTILE_TILE Tile<S, N> operator>>(Tile<S, N> a, int bits) {
  ROOFTILE_EACH_LANE(N) a.v[i] = a.v[i] >> bits;
  return a;
}
template <int N>
ROOFTILE_TILE Mask<N> operator&(Mask<N> a, Mask<N> b) {
  ROOFTILE_EACH_LANE(N) a.v[i] = a.v[i] && b.v[i];
  return a;
}
template <int N>
ROOFTILE_TILE Mask<N> operator|(Mask<N> a, Mask<N> b) {
  ROOFTILE_EACH_LANE(N) a.v[i] = a.v[i] || b.v[i];
  return a;
}
template <int N>
ROOFTILE_TILE Mask<N> operator!(Mask<N> a) {
  ROOFTILE_EACH_LANE(N) a.v[i] = !a.v[i];
  return a;
}
/// a where the mask holds, b elsewhere.
template <class S, int N>
ROOFTILE_TILE Tile<S, N> select(Mask<N> mask, Tile<S, N> a, Tile<S, N> b) {
  ROOFTILE_EACH_LANE(N) b.v[i] = mask.v[i] ? a.v[i] : b.v[i];
  return b;
}

template <class S, int N, class B>
ROOFTILE_TILE Tile<S, N>& operator+=(Tile<S, N>& a, const B& b) {
  return a = a + b;
}
template <class S, int N, class B>
ROOFTILE_TILE Tile<S, N>& operator*=(Tile<S, N>& a, const B& b) {
  return a = a * b;
}

/// a · b + c, rounded once.
template <Lanes A, class B, class C>
ROOFTILE_TILE TileOfT<A> fma(const A& a, const B& b, const C& c) {
  using T = TileOfT<A>;
  const T x = a, y = operand<T>(b), z = operand<T>(c);
  T r;
  ROOFTILE_EACH_LANE(T::kLanes) r.v[i] = fused(x.v[i], y.v[i], z.v[i]);
  return r;
}

/// To another type of the same width: integers to floats, rounded; floats to integers, toward zero.
template <class To, class From, int N>
ROOFTILE_TILE Tile<To, N> convert(const Tile<From, N>& a) {
  static_assert(sizeof(To) == sizeof(From), "rooftile::tile::convert: lanes of one width only");
  Tile<To, N> r;
  ROOFTILE_EACH_LANE(N) r.v[i] = static_cast<To>(a.v[i]);
  return r;
}
/// The same bits as another type of the same width.
template <class To, class From, int N>
ROOFTILE_TILE Tile<To, N> bit_cast(const Tile<From, N>& a) {
  static_assert(sizeof(To) == sizeof(From), "rooftile::tile::bit_cast: lanes of one width only");
  Tile<To, N> r;
  ROOFTILE_EACH_LANE(N) memcpy(&r.v[i], &a.v[i], sizeof(To));
  return r;
}

/// Scalars, one to a program.
ROOFTILE_TILE
float log(float x) { return ::logf(x); }
ROOFTILE_TILE
float exp(float x) { return ::expf(x); }
ROOFTILE_TILE
float sqrt(float x) { return __fsqrt_rn(x); }
ROOFTILE_TILE
float rsqrt(float x) { return ::rsqrtf(x); }
ROOFTILE_TILE
double sqrt(double x) { return __dsqrt_rn(x); }

/// e^x, lane by lane.
template <Lanes A>
ROOFTILE_TILE Tile<float, A::kLanes> exp(const A& a) {
  Tile<float, A::kLanes> r = a;
  ROOFTILE_EACH_LANE(A::kLanes) r.v[i] = ::expf(r.v[i]);
  return r;
}
/// For arguments up to 89, by the special function unit: relative error below 3e-7 + |x| · 9e-8, which is
/// what a difference from a maximum has anyway, in a third of expf's instructions. `deep`: some may be below
/// kDeep, and their results subnormal.
inline constexpr float kDeep = -87, kLog2E = 0x1.715476p0f;
template <Lanes A>
ROOFTILE_TILE Tile<float, A::kLanes> exp2_of_product(const A& a, float factor, bool deep) {
  Tile<float, A::kLanes> r = a;
  if (deep) {
    ROOFTILE_EACH_LANE(A::kLanes) r.v[i] = rooftile::cuda::exp2_approx(r.v[i] * factor);
  } else {
    ROOFTILE_EACH_LANE(A::kLanes) r.v[i] = rooftile::cuda::exp2_approx_normal(r.v[i] * factor);
  }
  return r;
}
template <Lanes A>
ROOFTILE_TILE Tile<float, A::kLanes> exp_below(const A& a, bool deep = true) {
  return exp2_of_product(a, kLog2E, deep);
}
/// e^(a · scale.rest) for a difference from a row's largest, as SplitScale has it: without `deep`, which
/// scales with more than 1 need, as many instructions.
template <Lanes A>
ROOFTILE_TILE Tile<float, A::kLanes> exp_below(const A& a, const SplitScale& scale, bool deep = true) {
  if (deep) return exp2_of_product(a * scale.more, scale.rest_log2e, true);
  return exp2_of_product(a, scale.rest_log2e, false);
}

/// 1/x for 2^-126 ≤ |x| ≤ 2^126, off by at most one ulp: a division takes eight instructions more.
template <Lanes A>
ROOFTILE_TILE Tile<float, A::kLanes> reciprocal(const A& a) {
  Tile<float, A::kLanes> r = a;
  ROOFTILE_EACH_LANE(A::kLanes) r.v[i] = rooftile::cuda::reciprocal_approx(r.v[i]);
  return r;
}
#if defined(ROOFTILE_HAS_F8_CODES)
/// Codes of f8e4m3 or f8e5m2: to nearest, ties to even, beyond the largest to it; of a NaN 0x7F.
template <Lanes A>
ROOFTILE_TILE Tile<std::int32_t, A::kLanes> f8_codes(const A& a, bool e5m2) {
  const Tile<float, A::kLanes> x = a;
  Tile<std::int32_t, A::kLanes> r;
  static_assert(A::kLanes % 2 == 0, "rooftile::tile::f8_codes: pairs");
  ROOFTILE_UNROLL for (int i = 0; i < A::kLanes; i += 2) {
    const unsigned pair = e5m2 ? rooftile::cuda::f8e5m2_pair(x.v[i], x.v[i + 1])
                               : rooftile::cuda::f8e4m3_pair(x.v[i], x.v[i + 1]);
    r.v[i] = static_cast<int>(pair & 0xFF), r.v[i + 1] = static_cast<int>(pair >> 8);
  }
  return r;
}
#endif
/// `value` in as many lanes as `a` has.
template <Lanes A>
ROOFTILE_TILE TileOfT<A> like(const A&, typename A::Lane value) {
  return operand<TileOfT<A>>(value);
}

/// Pairs of 16-bit elements: the larger ones, the smaller ones, and a pair of -infinity.
template <class T>
ROOFTILE_TILE unsigned larger_pair(unsigned a, unsigned b) {
  return std::is_same_v<T, bf16> ? rooftile::cuda::max_bf16x2(a, b) : rooftile::cuda::max_f16x2(a, b);
}
template <class T>
ROOFTILE_TILE unsigned smaller_pair(unsigned a, unsigned b) {
  return std::is_same_v<T, bf16> ? rooftile::cuda::min_bf16x2(a, b) : rooftile::cuda::min_f16x2(a, b);
}
template <class T>
constexpr unsigned lowest_pair() {
  return std::is_same_v<T, bf16> ? 0xff80ff80u : 0xfc00fc00u;
}

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
/// Toward zero, and odd where that lost something: what a second rounding needs to end as one would have.
ROOFTILE_TILE
float round_to_odd(double x) {
  const float f = static_cast<float>(x);
  const double back = f;
  if (back == x || back - back != 0) return f;  // exact, infinite or NaN
  const unsigned bits = __float_as_uint(f);
  return __uint_as_float((::fabs(back) > ::fabs(x) ? bits - 1 : bits) | 1);
}
template <class T, class S>
ROOFTILE_TILE T narrow(S x) {
  if constexpr (std::is_same_v<S, double> && sizeof(T) == 2)
    return narrow<T>(round_to_odd(x));
  else if constexpr (std::is_same_v<T, f16>)
    return {__half_as_ushort(__float2half_rn(x))};
  else if constexpr (std::is_same_v<T, bf16>)
    return {__bfloat16_as_ushort(__float2bfloat16_rn(x))};
  else
    return static_cast<T>(x);
}

}  // namespace cuda
}  // namespace rooftile::tile
