#pragma once
// One chunk of a product of a matrix and a vector on the CPU. A chunk of a row is added up in kLanes sums, of
// which sum l has the elements l, l + kLanes, …, and the sums are added by halves. Down contiguous columns a
// vector holds one such sum of as many rows as it has lanes: the same terms in the same order.
#include <algorithm>

#include "rooftile/tile/cpu/team.h"

namespace rooftile::tile {
inline namespace ROOFTILE_ISA {

/// Rows whose sums fit the registers, four vectors each, beside x's.
inline constexpr int kRowsAtOnce = kVectorBytes == 64 ? 4 : 2;
/// How far ahead memory is asked for.
inline constexpr std::int64_t kSumsAheadBytes = 2048;

// [row_sums]
/// Of kRows rows, `pitch` elements apart: Σ a_j·x_j below `size`. Each vector of x is loaded once.
template <int kRows, bool kStreaming, class T, class Real>
__attribute__((noinline)) void row_sums(const T* a, std::int64_t pitch, const T* x, std::int64_t size,
                                        Real (&sums)[kRows]) {
  Tile<Real> s[kRows];
#pragma GCC unroll 4
  for (int r = 0; r < kRows; ++r) s[r] = fill<Real>(0);
  std::int64_t j = 0;
  for (; j + kLanes<Real> <= size; j += kLanes<Real>) {
    const Tile<Real> right = load_whole<Real>(x + j);
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) {
      const T* const row = a + r * pitch + j;
      if constexpr (kStreaming)
        for (int b = 0; b < kLanes<Real> * int(sizeof(T)); b += 64)
          __builtin_prefetch(reinterpret_cast<const char*>(row) + kSumsAheadBytes + b, 0, 3);
      s[r] = fma(load_whole<Real>(row), right, s[r]);
    }
  }
  if (j < size) {  // lanes past the end read 0
    const int live = static_cast<int>(size - j);
    const Tile<Real> right = load_part<Real>(x + j, live, Real(0));
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r)
      s[r] = fma(load_part<Real>(a + r * pitch + j, live, Real(0)), right, s[r]);
  }
#pragma GCC unroll 4
  for (int r = 0; r < kRows; ++r) sums[r] = reduce_sum(s[r]);
}
// [/row_sums]

/// Rows whose columns are contiguous, in whole vectors of which the last one ends with the rows, and so may
/// have rows of the one before once more. `sums`: kLanes<Real> for each row, sum by sum.
template <class Real>
struct ColumnBlock {
  static constexpr std::int64_t kWidth = kVecLanes<Real>;
  std::int64_t rows;
  Real* sums;

  std::int64_t padded() const { return (rows + kWidth - 1) / kWidth * kWidth; }
  /// The first row of the vector whose sums begin at `at`.
  std::int64_t row(std::int64_t at) const { return std::min(at, rows - kWidth); }
  /// Where a row's sum lies.
  std::int64_t place(std::int64_t r) const {
    const std::int64_t whole = rows / kWidth * kWidth;
    return r < whole ? r : r + padded() - rows;
  }
};

/// Sum `at` of all rows goes on with kColumns columns, `apart` elements from one to the next.
template <int kColumns, class T, class Real>
ROOFTILE_TILE void add_to_sum(const ColumnBlock<Real>& block, Real* sum, const T* a, std::int64_t apart,
                              const Real* x, std::int64_t x_apart, std::int64_t ahead) {
  Vec<Real> right[kColumns];
#pragma GCC unroll 4
  for (int k = 0; k < kColumns; ++k) right[k] = splat<Real>(x[k * x_apart]);
  const std::int64_t padded = block.padded();
  for (std::int64_t at = 0; at < padded; at += ColumnBlock<Real>::kWidth) {
    const T* from = a + block.row(at);
    Vec<Real> s = load_unaligned<Vec<Real>>(sum + at);
#pragma GCC unroll 4
    for (int k = 0; k < kColumns; ++k, from += apart) {
      Vec<Real> left;
      widen(from, left);
      __builtin_prefetch(from + ahead, 0, 3);
      s = vfma(left, right[k], s);
    }
    store_unaligned(sum + at, s);
  }
}

// [add_columns]
/// block.sums[place of a row] = Σ a_j·x_j below `size`, column j at a + j · pitch. Four columns of one sum
/// come together, so that it is loaded and stored once for them.
template <class T, class Real>
__attribute__((noinline)) void add_columns(const ColumnBlock<Real>& block, const T* a, std::int64_t pitch,
                                           const Real* x, std::int64_t size) {
  constexpr std::int64_t kSums = kLanes<Real>;
  const std::int64_t padded = block.padded(), live = std::min(kSums, size);
  std::fill_n(block.sums, std::max<std::int64_t>(live, 1) * padded, Real(0));
  std::int64_t j = 0;
  for (; j + 4 * kSums <= size; j += 4 * kSums)
    for (std::int64_t l = 0; l < kSums; ++l)
      add_to_sum<4>(block, block.sums + l * padded, a + (j + l) * pitch, kSums * pitch, x + j + l, kSums,
                    pitch);
  for (; j < size; ++j)
    add_to_sum<1>(block, block.sums + j % kSums * padded, a + j * pitch, 0, x + j, 0, pitch);
  // By halves, as reduce_sum does: vectors 0 and 1, 2 and 3, these two, then a vector's lanes.
  constexpr std::int64_t kWidth = kVecLanes<Real>;
  const auto fold = [&](std::int64_t begin, std::int64_t count, std::int64_t far) {
    for (std::int64_t l = begin; l < begin + count && l + far < live; ++l) {
      Real *to = block.sums + l * padded, *from = block.sums + (l + far) * padded;
      for (std::int64_t at = 0; at < padded; at += kWidth)
        store_unaligned(to + at, load_unaligned<Vec<Real>>(to + at) + load_unaligned<Vec<Real>>(from + at));
    }
  };
  fold(0, kWidth, kWidth);
  fold(2 * kWidth, kWidth, kWidth);
  fold(0, kWidth, 2 * kWidth);
  for (std::int64_t far = kWidth / 2; far > 0; far /= 2) fold(0, far, far);
}
// [/add_columns]

}  // namespace ROOFTILE_ISA
}  // namespace rooftile::tile
