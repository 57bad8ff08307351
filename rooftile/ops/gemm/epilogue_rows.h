#pragma once
// What follows the products on the CPU, for a row of sums in scratch: factor and bias, activation, c, and y.
#include <algorithm>

#include "rooftile/tile/cpu/elements.h"

namespace rooftile::tile {
inline namespace ROOFTILE_ISA {

/// Runs f on each tile of lanes of a row in scratch, in place; it may read and write past the row's end, up
/// to a tile.
template <class S, class F>
ROOFTILE_TILE void in_place(S* row, std::int64_t columns, F f) {
  for (std::int64_t j = 0; j < columns; j += kLanes<S>) store_whole(row + j, f(load_whole<S>(row + j), j));
}

/// One number of any dtype that a product has.
template <class S>
S number_at(const void* data, DType type, std::int64_t at) {
  const auto* p = static_cast<const std::byte*>(data) + at * bits(type) / 8;
  if constexpr (std::is_integral_v<S>)
    return *reinterpret_cast<const S*>(p);
  else
    return static_cast<S>(load_scalar(p, type == DType::tf32 ? DType::f32 : type));
}

/// alpha · sum + bias. `bias`: of the tile's columns, in lanes; null: none, or `one` for the whole row.
template <class S>
__attribute__((noinline)) void scale_row(S* row, std::int64_t columns, S alpha, const S* bias, bool has_one,
                                         S one) {
  in_place(row, columns, [&](const Tile<S>& x, std::int64_t j) ROOFTILE_INLINE {
    if constexpr (std::is_integral_v<S>)  // unsigned: lanes past the row's end hold what was there, and may
                                          // wrap
      return bit_cast<S>(bit_cast<std::uint32_t>(x) +
                         bit_cast<std::uint32_t>(bias ? load_whole<S>(bias + j) : fill<S>(one)));
    else if (bias)
      return fma(x, alpha, load_whole<S>(bias + j));
    else
      return has_one ? fma(x, alpha, fill<S>(one)) : x * alpha;
  });
}

/// f32 to the nearest tf32, ties to even.
ROOFTILE_TILE Tile<float> rounded_to_tf32(const Tile<float>& x) {
  const auto bits = bit_cast<std::int32_t>(x);
  const auto rounded = (bits + (((bits >> 13) & 1) + 0xfff)) & static_cast<std::int32_t>(0xffffe000);
  return select(x == x, bit_cast<float>(rounded), x);
}

/// beta · c + value, or c · value, to y. `kRound`: T is f32's bits, of which a tf32 has 19.
template <class T, bool kRound, class S>
__attribute__((noinline)) void store_row(const S* row, std::int64_t columns, S beta, bool gate, const T* c,
                                         std::int64_t c_column, T* y, std::int64_t y_column) {
  for (std::int64_t j = 0; j < columns; j += kLanes<S>) {
    const int live = static_cast<int>(std::min<std::int64_t>(kLanes<S>, columns - j));
    Tile<S> x = load_whole<S>(row + j);
    if constexpr (!std::is_integral_v<S>) {
      if (c) {
        const T* at = c + j * c_column;
        const Tile<S> old = c_column != 1       ? gather_part<S>(at, c_column, live, S(0))
                            : live == kLanes<S> ? load_whole<S>(at)
                                                : load_part<S>(at, live, S(0));
        x = gate ? x * old : fma(old, beta, x);
      }
    }
    if constexpr (kRound) x = rounded_to_tf32(x);
    T* to = y + j * y_column;
    if (y_column != 1)
      scatter_part(to, y_column, live, x);
    else if (live == kLanes<S>)
      store_whole(to, x);
    else
      store_part(to, live, x);
  }
}

}  // namespace ROOFTILE_ISA
}  // namespace rooftile::tile
