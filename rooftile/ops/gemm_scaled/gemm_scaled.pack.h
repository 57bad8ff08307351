#pragma once
// Codes of 8 bits as numbers in lanes, where gemm's micro-kernel reads them (rooftile/ops/gemm/pack.h).
#include "rooftile/ops/gemm/pack_pairs.h"

namespace rooftile::tile {
inline namespace ROOFTILE_ISA {

/// What an f8's bits become in an f32's place.
template <class T>
struct F8Bits {
  static constexpr bool kLarge = std::is_same_v<T, f8e5m2>;
  static constexpr int kShift = kLarge ? 21 : 20;              // mantissa bits that an f32 has more
  static constexpr int kRebias = (kLarge ? 112 : 120) << 23;   // what its exponent is larger by
  static constexpr int kSmallestNormal = kLarge ? 4 : 8;       // codes below are multiples of
  static constexpr float kUnit = kLarge ? 0x1p-16f : 0x1p-9f;  // this
  static constexpr int kSpecial = kLarge ? 0x7C : 0x7F;        // from here on no numbers
};

/// Codes from 0 to 255. No product or sum on the way is subnormal, which many CPUs take 100 times as long
/// for.
template <class T>
ROOFTILE_TILE Vec<float> decoded(Vec<std::int32_t> codes) {
  using F = F8Bits<T>;
  const Vec<std::int32_t> size = codes & 0x7F, bits = size << F::kShift;
  const auto small = (Vec<std::int32_t>)(__builtin_convertvector(size, Vec<float>) * F::kUnit);
  Vec<std::int32_t> number = size < F::kSmallestNormal ? small : bits + F::kRebias;
  number = size >= F::kSpecial ? bits | 0x7F800000 : number;
  return (Vec<float>)(number | (codes & 0x80) << 24);
}
template <class T>
ROOFTILE_TILE float decoded_one(std::uint8_t code) {
  return to_float(T{code});
}

/// Words of four codes, a vector's lanes and maybe more, to four rows.
template <class T>
ROOFTILE_TILE void store_four(const std::uint32_t* words, std::int64_t live, float* to, std::int64_t pitch) {
  constexpr int kLanes = kVecLanes<float>;
  for (std::int64_t l = 0; l < live; l += kLanes) {
    const auto four = load_unaligned<Vec<std::int32_t>>(words + l);
#pragma GCC unroll 4
    for (int e = 0; e < 4; ++e) store_unaligned(to + e * pitch + l, decoded<T>(four >> 8 * e & 0xFF));
  }
}
/// Where neighbours in memory are in a column: a line of each of 16 columns at a time, whose words are turned
/// in registers.
template <class T>
ROOFTILE_TILE void pack_codes_down(const Block<std::uint8_t>& from, float* to, std::int64_t pitch) {
  constexpr std::int64_t n = kLineSquare<std::uint32_t>;
  for (std::int64_t j = 0; j < from.columns; j += n) {
    const std::int64_t live = std::min(n, from.columns - j);
    const std::uint8_t* data = from.data + j * from.column;
    alignas(64) std::uint32_t lines[n * n] = {}, words[n * n];
    std::int64_t i = 0;
    for (; i + kLineBytes <= from.rows; i += kLineBytes) {
      for (std::int64_t l = 0; l < live; ++l)
        std::memcpy(lines + l * n, data + i + l * from.column, kLineBytes);
      turn_square<true>(lines, n, words, n);
      for (std::int64_t w = 0; w < n; ++w)
        store_four<T>(words + w * n, live, to + (i + 4 * w) * pitch + j, pitch);
    }
    std::fill_n(words, n, 0u);
    for (; i + 4 <= from.rows; i += 4) {
      for (std::int64_t l = 0; l < live; ++l) std::memcpy(words + l, data + i + l * from.column, 4);
      store_four<T>(words, live, to + i * pitch + j, pitch);
    }
    for (; i < from.rows; ++i)
      for (std::int64_t l = 0; l < live; ++l)
        to[i * pitch + j + l] = decoded_one<T>(data[i + l * from.column]);
  }
}
/// Rows `pitch` apart, whose whole vectors there is room for, filled up with zeros to `width` columns.
template <class T>
__attribute__((noinline)) void pack_codes(const Block<std::uint8_t>& from, float* to, std::int64_t pitch,
                                          std::int64_t width) {
  constexpr int kLanes = kVecLanes<float>;
  if (from.column == 1 || from.columns == 1)
    for (std::int64_t i = 0; i < from.rows; ++i) {
      const std::uint8_t* row = from.data + i * from.row;
      std::int64_t j = 0;
      for (; j + kLanes <= from.columns; j += kLanes) {
        Vec<std::int32_t> codes;
        widen(row + j, codes);
        store_unaligned(to + i * pitch + j, decoded<T>(codes));
      }
      for (; j < from.columns; ++j) to[i * pitch + j] = decoded_one<T>(row[j]);
    }
  else if (from.row == 1)
    pack_codes_down<T>(from, to, pitch);
  else
    for (std::int64_t i = 0; i < from.rows; ++i)
      for (std::int64_t j = 0; j < from.columns; ++j)
        to[i * pitch + j] = decoded_one<T>(from.data[i * from.row + j * from.column]);
  for (std::int64_t i = 0; from.columns < width && i < from.rows; ++i)
    std::fill(to + i * pitch + from.columns, to + i * pitch + width, 0.0f);
}
inline void pack_codes(DType type, const Block<std::uint8_t>& from, float* to, std::int64_t pitch,
                       std::int64_t width) {
  if (type == DType::f8e4m3)
    pack_codes<f8e4m3>(from, to, pitch, width);
  else
    pack_codes<f8e5m2>(from, to, pitch, width);
}

}  // namespace ROOFTILE_ISA
}  // namespace rooftile::tile
