#pragma once
// Two to four planes on the CPU, taken apart (rgb rgb … to rrr… ggg… bbb…) or put together: vectors of 16
// bytes that shuffles of two at a time bring into order.
#include <algorithm>
#include <array>
#include <cstring>

#include "rooftile/ops/transpose/panel.h"

namespace rooftile::tile {
inline namespace ROOFTILE_ISA {

/// Fewer planes than a square's side, which squares would be mostly empty of.
inline constexpr std::int64_t kMaxPlanes = 4;
/// Elements of each plane in a step: all of them together fit half of L1.
template <class E>
inline constexpr std::int64_t kPlaneStep = 4096 / std::int64_t(sizeof(E));

/// Of kPlanes that are taken apart kUsed are wanted (rgba's first three).
template <class E, int kPlanes, int kUsed = kPlanes>
struct Planes {
  using V = typename VectorOf<E, kLaneBytes>::type;
  static constexpr int n = kLaneSquare<E>;

  /// Whence element `to` of kPlanes vectors comes, element by element of them all.
  template <bool kApart>
  static constexpr int source(int to) {
    return kApart ? to % n * kPlanes + to / n : to % kPlanes * n + to / kPlanes;
  }
  /// Of the elements of vector `to` those that come from vectors up to `step`: kept from the steps before, or
  /// taken from that vector.
  template <bool kApart, int kTo, int kStep, int... kAt>
  ROOFTILE_TILE static V merged(V kept, V next, std::integer_sequence<int, kAt...>) {
    return __builtin_shufflevector(
        kept, next,
        (source<kApart>(kTo * n + kAt) / n == kStep             ? n + source<kApart>(kTo * n + kAt) % n
         : kStep == 1 && source<kApart>(kTo * n + kAt) / n == 0 ? source<kApart>(kTo * n + kAt) % n
                                                                : kAt)...);
  }
  template <bool kApart, int kTo, int kStep = 1>
  ROOFTILE_TILE static V gathered(const V (&v)[kPlanes], V kept) {
    const V now = merged<kApart, kTo, kStep>(kept, v[kStep], std::make_integer_sequence<int, n>());
    if constexpr (kStep + 1 < kPlanes)
      return gathered<kApart, kTo, kStep + 1>(v, now);
    else
      return now;
  }
  template <bool kApart, int... kTo>
  ROOFTILE_TILE static void store(const V (&v)[kPlanes], E* to, std::int64_t pitch,
                                  std::integer_sequence<int, kTo...>) {
    (store_unaligned(to + kTo * (kApart ? pitch : n), gathered<kApart, kTo>(v, v[0])), ...);
  }

  /// `size` elements of each plane; `pitch` elements from plane to plane where they are apart.
  template <bool kApart>
  static void move(const E* from, E* to, std::int64_t pitch, std::int64_t size) {
    std::int64_t i = 0;
    // The last pixel's bytes that are not wanted may be nobody's to read.
    for (; i + n <= size - (kUsed < kPlanes); i += n) {
      V v[kPlanes];
#pragma GCC unroll 4
      for (int p = 0; p < kPlanes; ++p)
        v[p] = load_unaligned<V>(kApart ? from + i * kPlanes + p * n : from + p * pitch + i);
      store<kApart>(v, kApart ? to + i : to + i * kPlanes, pitch, std::make_integer_sequence<int, kUsed>());
    }
    for (; i < size; ++i)
      for (int p = 0; p < kUsed; ++p)
        (kApart ? to[p * pitch + i] : to[i * kPlanes + p]) =
            kApart ? from[i * kPlanes + p] : from[p * pitch + i];
  }

  /// The same past the caches, at most kPlaneStep of each plane, by way of `scratch`.
  template <bool kApart>
  static void stream(const E* from, E* to, std::int64_t pitch, std::int64_t size, E* scratch) {
    move<kApart>(from, scratch, kApart ? kPlaneStep<E> : pitch, size);
    if (!kApart) return stream_run(scratch, size * kPlanes, to);
    for (int p = 0; p < kUsed; ++p) stream_run(scratch + p * kPlaneStep<E>, size, to + p * pitch);
  }
};

/// Calls f.template operator()<n>() for n planes, 2 to 4.
template <class F>
void with_planes(std::int64_t planes, F&& f) {
  if (planes == 2) return f.template operator()<2>();
  if (planes == 3) return f.template operator()<3>();
  f.template operator()<4>();
}

}  // namespace ROOFTILE_ISA
}  // namespace rooftile::tile
