#pragma once
// Blocks of A and B of 8-bit integers as the micro-kernel reads them: two neighbours in K to a lane.
#include "rooftile/ops/gemm/pack.h"

namespace rooftile::tile {
inline namespace ROOFTILE_ISA {

/// Two neighbours in K as the halves of a lane; past an odd K comes a 0.
ROOFTILE_TILE std::int32_t pair_of(int low, int high) {
  return static_cast<std::int32_t>(static_cast<std::uint32_t>(low & 0xffff) | static_cast<std::uint32_t>(high)
                                                                                  << 16);
}
/// A's: neighbours in a row.
inline __attribute__((noinline)) void pack_pairs_across(const Block<std::int8_t>& from, std::int32_t* to,
                                                        std::int64_t pitch) {
  for (std::int64_t i = 0; i < from.rows; ++i)
    for (std::int64_t j = 0; j < from.columns; j += 2) {
      const std::int8_t* x = from.data + i * from.row + j * from.column;
      to[i * pitch + j / 2] = pair_of(x[0], j + 1 < from.columns ? x[from.column] : 0);
    }
}
/// B's: neighbours in a column; rows filled up as above.
inline __attribute__((noinline)) void pack_pairs_down(const Block<std::int8_t>& from, std::int32_t* to,
                                                      std::int64_t pitch, std::int64_t width) {
  using Lanes = Vec<std::int32_t>;
  for (std::int64_t i = 0; i < from.rows; i += 2, to += pitch) {
    std::int64_t j = 0;
    for (; from.column == 1 && j + kVecLanes<std::int32_t> <= from.columns; j += kVecLanes<std::int32_t>) {
      const auto* x = reinterpret_cast<const std::uint8_t*>(from.data + i * from.row + j);
      Lanes low, high{};
      widen(x, low);
      if (i + 1 < from.rows) widen(x + from.row, high);
      store_unaligned(to + j, (low << 24 >> 24 & 0xffff) | high << 24 >> 8);
    }
    for (; j < from.columns; ++j) {
      const std::int8_t* x = from.data + i * from.row + j * from.column;
      to[j] = pair_of(x[0], i + 1 < from.rows ? x[from.row] : 0);
    }
    std::fill(to + from.columns, to + width, 0);
  }
}

}  // namespace ROOFTILE_ISA
}  // namespace rooftile::tile
