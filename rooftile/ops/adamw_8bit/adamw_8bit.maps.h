#pragma once
// Dynamic quantisation (Dettmers, arXiv:1511.04561): the numbers that the codes of m and v stand for, and
// where each begins.
#include <bit>
#include <cstdint>

namespace rooftile {

inline constexpr int kDynamicBlock = 256;

/// numbers[0] < … < numbers[255] = 1. above[i]: what exceeds it has a code beyond i.
struct DynamicMap {
  float numbers[256];
  float above[256];
};

// [map]
/// Decade i, of seven, is [0.1, 1] · 10^(i - 6) in 2^i equal steps, whose middles are the numbers; without
/// signs in twice as many. 0 and 1 are numbers, too.
constexpr DynamicMap dynamic_map(bool with_signs) {
  DynamicMap map{};
  int positive = 0;
  float numbers[254]{};
  double unit = 1e-6;
  for (int decade = 0; decade < 7; ++decade, unit *= 10) {
    const int steps = (with_signs ? 1 : 2) << decade;
    for (int i = 0; i < steps; ++i)
      numbers[positive++] = static_cast<float>((0.1 + 0.9 * (i + 0.5) / steps) * unit);
  }
  const int zero = with_signs ? positive : 0;
  for (int i = 0; i < positive; ++i) {
    if (with_signs) map.numbers[zero - 1 - i] = -numbers[i];
    map.numbers[zero + 1 + i] = numbers[i];
  }
  map.numbers[255] = 1;
  for (int i = 0; i < 255; ++i) map.above[i] = (map.numbers[i] + map.numbers[i + 1]) * 0.5f;
  map.above[255] = 2;
  if (with_signs) map.above[zero - 1] = -0x1p-149f;  // what is negative has a negative number
  return map;
}
// [/map]
inline constexpr DynamicMap kSignedMap = dynamic_map(true), kUnsignedMap = dynamic_map(false);
inline constexpr int kSignedZero = 127, kUnsignedZero = 0;

/// How many thresholds x exceeds, in eight steps. Of a NaN none.
constexpr int dynamic_code(const float (&above)[256], float x) {
  int code = 0;
  for (int step = 128; step > 0; step /= 2) code += x > above[code + step - 1] ? step : 0;
  return code;
}

/// The same in two loads for |x| <= 1: numbers that agree in their first 16 bits have at most one threshold
/// between them. Numbers below 2^-24 count as 0: the first threshold but 0's is larger.
struct DynamicCodes {
  static constexpr int kFirst = 103 << 7, kBuckets = (127 << 7) + 1 - kFirst;  // of 2^-24; to 1
  std::uint8_t begin[2][kBuckets];

  static constexpr float number(int bucket) { return std::bit_cast<float>((bucket + kFirst) << 16); }
  int code(const float (&above)[256], float x) const {
    const auto bits = std::bit_cast<std::uint32_t>(x);
    int bucket = static_cast<int>(bits >> 16 & 0x7fff) - kFirst;
    bucket = bucket < 0 ? 0 : bucket;
    const int from = begin[bits >> 31][bucket < kBuckets ? bucket : kBuckets - 1];
    return from + (x > above[from] ? 1 : 0);
  }
};
constexpr DynamicCodes dynamic_codes(const DynamicMap& map) {
  DynamicCodes codes{};
  for (int bucket = 0; bucket < DynamicCodes::kBuckets; ++bucket) {
    const float low = bucket == 0 ? 0 : DynamicCodes::number(bucket), high = DynamicCodes::number(bucket + 1);
    codes.begin[0][bucket] = static_cast<std::uint8_t>(dynamic_code(map.above, low));
    const float least = std::bit_cast<float>(std::bit_cast<std::uint32_t>(-high) - 1);  // next above -high
    codes.begin[1][bucket] = static_cast<std::uint8_t>(dynamic_code(map.above, least));
  }
  return codes;
}

}  // namespace rooftile
