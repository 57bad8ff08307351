#pragma once
#include <cstdint>

namespace rooftile {

/// The element types of a tensor. A kernel says which of them it takes.
enum class DType : std::uint8_t {
  f64,
  f32,
  tf32,    ///< 32 bits stored; matrix instructions read 19 of them
  f16,     ///< IEEE 754 binary16
  bf16,    ///< the upper half of an f32
  f8e4m3,  ///< OCP 8-bit float, finite only (no infinity)
  f8e5m2,  ///< OCP 8-bit float with infinities
  i64,
  i32,
  i8,
  u8,
  boolean,  ///< one byte, 0 or 1
  u4,       ///< packed, two to a byte, the first in the high nibble
};
inline constexpr int kDTypes = 13;

/// Whether it is one of the above: a view may come from a language without enums, or from memory that nobody
/// wrote. The functions below take any value.
constexpr bool is_known(DType type) { return static_cast<int>(type) < kDTypes; }

/// Bits that one element takes in memory; 0 of an unknown type.
constexpr int bits(DType type) {
  constexpr int table[kDTypes] = {64, 32, 32, 16, 16, 8, 8, 64, 32, 8, 8, 8, 4};
  return is_known(type) ? table[static_cast<int>(type)] : 0;
}

/// Short name, as commands and messages write it: "f32".
constexpr const char* name(DType type) {
  constexpr const char* table[kDTypes] = {"f64", "f32", "tf32", "f16", "bf16", "f8e4m3", "f8e5m2",
                                          "i64", "i32", "i8",   "u8",  "bool", "u4"};
  return is_known(type) ? table[static_cast<int>(type)] : "of an unknown dtype";
}

constexpr bool is_floating(DType type) { return type <= DType::f8e5m2; }

/// Bytes that `count` elements take, packed ones rounded up to a whole byte.
constexpr std::int64_t bytes_of(DType type, std::int64_t count) { return (count * bits(type) + 7) / 8; }

/// Storage of the formats that C++20 has no type for. Only bits: arithmetic is the kernels' business;
/// rooftile/core/convert.h converts one element.
struct f16 {
  std::uint16_t bits;
};
struct bf16 {
  std::uint16_t bits;
};
struct tf32 {
  std::uint32_t bits;
};
struct f8e4m3 {
  std::uint8_t bits;
};
struct f8e5m2 {
  std::uint8_t bits;
};
/// Two packed 4-bit elements.
struct u4x2 {
  std::uint8_t bits;
};

}  // namespace rooftile
