#pragma once
// Bytes of pixels on the CPU whose channels change order or are fewer (rgb to bgr, rgba to rgb): 16 bytes
// hold a few whole pixels, which one shuffle brings to where they belong.
#include "rooftile/ops/transpose/planes.h"

namespace rooftile::tile {
inline namespace ROOFTILE_ISA {

/// Pixels of kFrom bytes, of which kTo are taken; those from the last on where they are `kReversed`.
template <int kFrom, int kTo, bool kReversed>
struct Channels {
  using V = typename VectorOf<std::uint8_t, 16>::type;
  static constexpr int kEach = 16 / kFrom;
  static constexpr std::int64_t kStep = 4096;  ///< pixels of a program: they fit half of L1

  static constexpr int source(int to) {
    return to >= kEach * kTo ? 0 : to / kTo * kFrom + (kReversed ? kTo - 1 - to % kTo : to % kTo);
  }
  template <int... kAt>
  ROOFTILE_TILE static V shuffled(V v, std::integer_sequence<int, kAt...>) {
    return __builtin_shufflevector(v, v, source(kAt)...);
  }

  /// `from`: the first pixel's lowest byte. What a vector has past its pixels the next one writes over.
  static void move(const std::uint8_t* from, std::uint8_t* to, std::int64_t size) {
    std::int64_t i = 0;
    for (; i * kFrom + 16 <= (size - 1) * kFrom + kTo && i * kTo + 16 <= size * kTo; i += kEach)
      store_unaligned(to + i * kTo,
                      shuffled(load_unaligned<V>(from + i * kFrom), std::make_integer_sequence<int, 16>()));
    for (; i < size; ++i)
      for (int c = 0; c < kTo; ++c) to[i * kTo + c] = from[i * kFrom + (kReversed ? kTo - 1 - c : c)];
  }
};

/// Calls f.template operator()<Channels<…>>(); false: pixels are none of these.
template <class F>
bool with_channels(std::int64_t from, std::int64_t to, bool reversed, F&& f) {
  if (from == 3 && to == 3 && reversed) return f.template operator()<Channels<3, 3, true>>(), true;
  if (from == 4 && to == 4 && reversed) return f.template operator()<Channels<4, 4, true>>(), true;
  if (from == 4 && to == 3 && reversed) return f.template operator()<Channels<4, 3, true>>(), true;
  if (from == 4 && to == 3) return f.template operator()<Channels<4, 3, false>>(), true;
  return false;
}

}  // namespace ROOFTILE_ISA
}  // namespace rooftile::tile
