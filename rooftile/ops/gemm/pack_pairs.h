#pragma once
// Blocks of A and B of 8-bit integers as the micro-kernel reads them: two neighbours in K to a lane.
#include <utility>

#include "rooftile/ops/gemm/pack.h"

namespace rooftile::tile {
inline namespace ROOFTILE_ISA {

/// Two neighbours in K as the halves of a lane; past an odd K comes a 0.
ROOFTILE_TILE std::int32_t pair_of(int low, int high) {
  return static_cast<std::int32_t>(static_cast<std::uint32_t>(low & 0xffff) | static_cast<std::uint32_t>(high)
                                                                                  << 16);
}
/// As many bytes as a vector has halves of lanes: two for each pair.
inline constexpr int kBytePairs = kVecLanes<std::int32_t>;
using PairBytes = typename VectorOf<std::int8_t, 2 * kBytePairs>::type;
ROOFTILE_TILE Vec<std::int32_t> widened(PairBytes bytes) {
  return (Vec<std::int32_t>)__builtin_convertvector(bytes, Vec<std::int16_t>);
}
/// Pairs that follow each other in memory.
ROOFTILE_TILE Vec<std::int32_t> pairs_of(const std::int8_t* p) {
  return widened(load_unaligned<PairBytes>(p));
}
/// Pairs of two rows, from column kFirst on.
template <int kFirst, int... kAt>
ROOFTILE_TILE Vec<std::int32_t> pairs_of(PairBytes even, PairBytes odd, std::integer_sequence<int, kAt...>) {
  return widened(__builtin_shufflevector(even, odd, (kFirst + kAt / 2 + kAt % 2 * 2 * kBytePairs)...));
}

/// A strip's row of B, widened; of 8-bit integers two rows, in pairs.
template <class S, class T>
ROOFTILE_TILE void load_strip(const T* b, std::int64_t pitch, Vec<S>& low, Vec<S>& high) {
  if constexpr (sizeof(T) == 1) {
    constexpr auto all = std::make_integer_sequence<int, 2 * kBytePairs>();
    const auto even = load_unaligned<PairBytes>(b), odd = load_unaligned<PairBytes>(b + pitch);
    low = pairs_of<0>(even, odd, all);
    high = pairs_of<kBytePairs>(even, odd, all);
  } else {
    low = lanes_of<S>(b);
    high = lanes_of<S>(b + kVecLanes<S>);
  }
}

/// A's: neighbours in a row.
inline __attribute__((noinline)) void pack_pairs_across(const Block<std::int8_t>& from, std::int32_t* to,
                                                        std::int64_t pitch) {
  for (std::int64_t i = 0; i < from.rows; ++i) {
    std::int64_t j = 0;
    for (; from.column == 1 && j + 2 * kBytePairs <= from.columns; j += 2 * kBytePairs)
      store_unaligned(to + i * pitch + j / 2, pairs_of(from.data + i * from.row + j));
    for (; j < from.columns; j += 2) {
      const std::int8_t* x = from.data + i * from.row + j * from.column;
      to[i * pitch + j / 2] = pair_of(x[0], j + 1 < from.columns ? x[from.column] : 0);
    }
  }
}

/// B's: neighbours in a column. Where these are neighbours in memory, squares are turned in registers; says
/// how many rows.
inline __attribute__((noinline)) std::int64_t turn_pairs(const Block<std::int8_t>& from, std::int32_t* to,
                                                         std::int64_t pitch) {
  std::int64_t i = 0;
  for (; i + 2 * kBytePairs <= from.rows; i += 2 * kBytePairs)
    for (std::int64_t j = 0; j < from.columns; j += kBytePairs) {
      Vec<std::int32_t> square[kBytePairs];
#pragma GCC unroll 16
      for (int k = 0; k < kBytePairs; ++k) square[k] = pairs_of(from.data + i + (j + k) * from.column);
      turn_vectors<std::int32_t>(square);
#pragma GCC unroll 16
      for (int k = 0; k < kBytePairs; ++k) store_unaligned(to + (i / 2 + k) * pitch + j, square[k]);
    }
  return i;
}
/// Rows are filled up as above.
inline __attribute__((noinline)) void pack_pairs_down(const Block<std::int8_t>& from, std::int32_t* to,
                                                      std::int64_t pitch, std::int64_t width) {
  const bool turns = from.row == 1 && from.column != 1 && from.columns == width && width % kBytePairs == 0;
  for (std::int64_t i = turns ? turn_pairs(from, to, pitch) : 0; i < from.rows; i += 2) {
    std::int32_t* const row = to + i / 2 * pitch;
    if (from.column == 1 && from.columns == 2 * kBytePairs && i + 1 < from.rows) {
      Vec<std::int32_t> low, high;
      load_strip<std::int32_t>(from.data + i * from.row, from.row, low, high);
      store_unaligned(row, low);
      store_unaligned(row + kBytePairs, high);
      continue;
    }
    for (std::int64_t j = 0; j < from.columns; ++j) {
      const std::int8_t* x = from.data + i * from.row + j * from.column;
      row[j] = pair_of(x[0], i + 1 < from.rows ? x[from.row] : 0);
    }
    std::fill(row + from.columns, row + width, 0);
  }
}

}  // namespace ROOFTILE_ISA
}  // namespace rooftile::tile
