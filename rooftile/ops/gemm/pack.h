#pragma once
// Blocks of A and B as the micro-kernel reads them: in lanes (16-bit floats widened to 32), side by side.
#include <algorithm>

#include "rooftile/core/convert.h"
#include "rooftile/tile/cpu/turn.h"

namespace rooftile::tile {
inline namespace ROOFTILE_ISA {

/// The upper 19 bits of a tf32, which is what matrix instructions read of it.
inline constexpr std::uint32_t kTf32Bits = 0xffffe000;

template <class T>
ROOFTILE_TILE auto lane_of(const T& x) {
  if constexpr (std::is_same_v<T, tf32>)
    return to_float(tf32{x.bits & kTf32Bits});
  else if constexpr (std::is_arithmetic_v<T>)
    return x;
  else
    return to_float(x);
}
template <class S, class T>
ROOFTILE_TILE Vec<S> lanes_of(const T* p) {
  Vec<S> v;
  if constexpr (std::is_same_v<T, tf32>)
    v = (Vec<float>)(load_unaligned<Vec<std::uint32_t>>(p) & kTf32Bits);
  else
    widen(p, v);
  return v;
}
template <class S, class T>
ROOFTILE_TILE void widen_run(const T* from, std::int64_t count, S* to) {
  std::int64_t i = 0;
  for (; i + kVecLanes<S> <= count; i += kVecLanes<S>) store_unaligned(to + i, lanes_of<S>(from + i));
  for (; i < count; ++i) to[i] = lane_of(from[i]);
}

/// A part of a matrix of T: element (i, j) at data[i·row + j·column].
template <class T>
struct Block {
  const T* data;
  std::int64_t row, column, rows, columns;
};

template <class S, class T>
ROOFTILE_TILE void pack_by_element(const Block<T>& from, S* to, std::int64_t pitch) {
  for (std::int64_t i = 0; i < from.rows; ++i)
    for (std::int64_t j = 0; j < from.columns; ++j)
      to[i * pitch + j] = lane_of(from.data[i * from.row + j * from.column]);
}

/// Where neighbours in memory are rows: in squares turned in registers, so that each line is read once.
/// `ahead`: how many elements behind a line the one is that will be needed next; 0: nobody knows.
template <class S, class T>
ROOFTILE_TILE void pack_turned(const Block<T>& from, S* to, std::int64_t pitch, std::int64_t ahead) {
  const std::int64_t n = kVecLanes<S>, rows = from.rows / n * n, columns = from.columns / n * n;
  for (std::int64_t j = 0; j < columns; j += n)
    for (std::int64_t i = 0; i < rows; i += n) {
      Vec<S> square[n];
#pragma GCC unroll 16
      for (int k = 0; k < n; ++k) {
        square[k] = lanes_of<S>(from.data + i + (j + k) * from.column);
        if (ahead > 0) __builtin_prefetch(from.data + i + (j + k) * from.column + ahead);
      }
      turn_vectors<S>(square);
#pragma GCC unroll 16
      for (int k = 0; k < n; ++k) store_unaligned(to + (i + k) * pitch + j, square[k]);
    }
  const auto rest = [&](std::int64_t i, std::int64_t j, std::int64_t height, std::int64_t width) {
    pack_by_element(Block<T>{from.data + i + j * from.column, 1, from.column, height, width},
                    to + i * pitch + j, pitch);
  };
  rest(rows, 0, from.rows - rows, columns);
  rest(0, columns, from.rows, from.columns - columns);
}

/// Rows `pitch` apart, filled up with zeros to `width` columns. `ahead`: as pack_turned's.
template <class S, class T>
__attribute__((noinline)) void pack(const Block<T>& from, S* to, std::int64_t pitch, std::int64_t width,
                                    std::int64_t ahead = 0) {
  if (from.column == 1 && from.columns == 2 * kVecLanes<S>)  // a strip of B
    for (std::int64_t i = 0; i < from.rows; ++i) {
      const T* row = from.data + i * from.row;
      store_unaligned(to + i * pitch, lanes_of<S>(row));
      store_unaligned(to + i * pitch + kVecLanes<S>, lanes_of<S>(row + kVecLanes<S>));
    }
  else if (from.column == 1 || from.columns == 1)
    for (std::int64_t i = 0; i < from.rows; ++i)
      widen_run(from.data + i * from.row, from.columns, to + i * pitch);
  else if (from.row == 1)
    pack_turned(from, to, pitch, ahead);
  else
    pack_by_element(from, to, pitch);
  for (std::int64_t i = 0; from.columns < width && i < from.rows; ++i)
    std::fill(to + i * pitch + from.columns, to + i * pitch + width, S(0));
}

}  // namespace ROOFTILE_ISA
}  // namespace rooftile::tile
