#pragma once
// Squares of elements turned in vector registers: rows come in, columns go out. GNU vectors alone: compilers
// make one instruction of each interleaving.
#include <cstddef>
#include <cstdint>
#include <utility>

#include "rooftile/tile/cpu/vector.h"

namespace rooftile::tile {
inline namespace ROOFTILE_ISA {

/// Bytes of a lane, within which x86's vectors interleave, and of a cache line.
inline constexpr int kLaneBytes = 16, kLineBytes = 64;

/// Elements of E in a lane; a square of so many rows and columns turns in each lane by itself.
template <class E>
inline constexpr int kLaneSquare = kLaneBytes / int(sizeof(E));
/// Elements of E in a line: squares of so many rows and columns are whole lines on both sides.
template <class E>
inline constexpr int kLineSquare = kLineBytes / int(sizeof(E));

template <class V, int... kAt>
ROOFTILE_TILE auto joined(V low, V high, std::integer_sequence<int, kAt...>) {
  return __builtin_shufflevector(low, high, kAt...);
}
/// 16 bytes from `p`, from `pitch` bytes behind it, and so on; a vector of `kBytes`.
template <int kBytes>
ROOFTILE_TILE auto load_lanes(const std::byte* p, std::int64_t pitch) {
  if constexpr (kBytes == kLaneBytes)
    return load_unaligned<typename VectorOf<std::uint8_t, kBytes>::type>(p);
  else
    return joined(load_lanes<kBytes / 2>(p, pitch),
                  load_lanes<kBytes / 2>(p + kBytes / 2 / kLaneBytes * pitch, pitch),
                  std::make_integer_sequence<int, kBytes>());
}

/// Elements of a and b by turns, of each lane's lower half or of its upper one.
template <bool kUpper, class E, int... kAt>
ROOFTILE_TILE Vec<E> interleave(Vec<E> a, Vec<E> b, std::integer_sequence<int, kAt...>) {
  constexpr int n = kLaneSquare<E>;
  return __builtin_shufflevector(
      a, b, (kAt / n * n + (kUpper ? n / 2 : 0) + kAt % n / 2 + kAt % 2 * kVecLanes<E>)...);
}

// [turn]
/// A square of whole lines on both sides: rows of x, `x_pitch` elements apart, to rows of y. kDense: x's
/// lines have no gaps (a pitch that the compiler knows; of 8-bit elements, 64 addresses less to keep).
///
/// At a time as many rows as a vector holds elements, and as many columns as a lane does. Interleaving row r
/// with row r + half of them, as often as halving leads to one row, turns the square in each lane: after the
/// first step an element's neighbour is the one that was half a square below it, and so on.
template <bool kDense, class E>
__attribute__((noinline)) void turn_square(const E* x, std::int64_t x_pitch, E* y, std::int64_t y_pitch) {
  constexpr int kSquare = kLineSquare<E>, n = kLaneSquare<E>;
  constexpr auto all = std::make_integer_sequence<int, kVecLanes<E>>();
  const std::int64_t pitch = kDense ? kSquare : x_pitch;
  for (int column = 0; column < kSquare; column += n)
    for (int row = 0; row < kSquare; row += kVecLanes<E>) {
      Vec<E> v[n];
#pragma GCC unroll 16
      for (int r = 0; r < n; ++r)
        v[r] = (Vec<E>)load_lanes<kVectorBytes>(
            reinterpret_cast<const std::byte*>(x + (row + r) * pitch + column),
            n * pitch * std::int64_t(sizeof(E)));
#pragma GCC unroll 4
      for (int step = 1; step < n; step *= 2) {
        Vec<E> w[n];
#pragma GCC unroll 8
        for (int r = 0; r < n / 2; ++r) {
          w[2 * r] = interleave<false, E>(v[r], v[r + n / 2], all);
          w[2 * r + 1] = interleave<true, E>(v[r], v[r + n / 2], all);
        }
#pragma GCC unroll 16
        for (int r = 0; r < n; ++r) v[r] = w[r];
      }
      E* to = y + column * y_pitch + row;
#pragma GCC unroll 16
      for (int r = 0; r < n; ++r, to += y_pitch) store_unaligned(to, v[r]);
    }
}
// [/turn]

/// Lanes of a (the first half of the numbers) and of b.
template <class E, int... kPicked, int... kAt>
ROOFTILE_TILE Vec<E> pick_lanes(Vec<E> a, Vec<E> b, std::integer_sequence<int, kPicked...>,
                                std::integer_sequence<int, kAt...>) {
  constexpr int n = kLaneSquare<E>, picked[] = {kPicked...};
  return __builtin_shufflevector(a, b, (picked[kAt / n] * n + kAt % n)...);
}
/// A square that is in registers already, a vector for each row: first whole lanes change places, then each
/// lane's squares turn as above.
template <class E>
ROOFTILE_TILE void turn_vectors(Vec<E>* v) {
  constexpr int kSize = kVecLanes<E>, n = kLaneSquare<E>, kLanes = kSize / n;
  constexpr auto all = std::make_integer_sequence<int, kSize>();
  Vec<E> w[kSize];
#pragma GCC unroll 8
  for (int r = 0; r < n && kLanes > 1; ++r) {
    if constexpr (kLanes == 2) {
      using First = std::integer_sequence<int, 0, 2>;
      using Second = std::integer_sequence<int, 1, 3>;
      w[r] = pick_lanes<E>(v[r], v[r + n], First(), all);
      w[r + n] = pick_lanes<E>(v[r], v[r + n], Second(), all);
    } else if constexpr (kLanes == 4) {
      using Low = std::integer_sequence<int, 0, 1, 4, 5>;
      using High = std::integer_sequence<int, 2, 3, 6, 7>;
      using Even = std::integer_sequence<int, 0, 2, 4, 6>;
      using Odd = std::integer_sequence<int, 1, 3, 5, 7>;
      const Vec<E> a = pick_lanes<E>(v[r], v[r + n], Low(), all),
                   b = pick_lanes<E>(v[r], v[r + n], High(), all),
                   c = pick_lanes<E>(v[r + 2 * n], v[r + 3 * n], Low(), all),
                   d = pick_lanes<E>(v[r + 2 * n], v[r + 3 * n], High(), all);
      w[r] = pick_lanes<E>(a, c, Even(), all);
      w[r + n] = pick_lanes<E>(a, c, Odd(), all);
      w[r + 2 * n] = pick_lanes<E>(b, d, Even(), all);
      w[r + 3 * n] = pick_lanes<E>(b, d, Odd(), all);
    }
  }
  Vec<E>* from = kLanes > 1 ? w : v;
  Vec<E>* to = kLanes > 1 ? v : w;
#pragma GCC unroll 4
  for (int step = 1; step < n; step *= 2) {
#pragma GCC unroll 8
    for (int q = 0; q < kSize; q += n)
#pragma GCC unroll 8
      for (int r = 0; r < n / 2; ++r) {
        to[q + 2 * r] = interleave<false, E>(from[q + r], from[q + r + n / 2], all);
        to[q + 2 * r + 1] = interleave<true, E>(from[q + r], from[q + r + n / 2], all);
      }
    std::swap(from, to);
  }
  if (from != v)
#pragma GCC unroll 16
    for (int r = 0; r < kSize; ++r) v[r] = from[r];
}

}  // namespace ROOFTILE_ISA
}  // namespace rooftile::tile
