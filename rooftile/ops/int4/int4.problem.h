#pragma once
// What passes from validation (int4.cpp) to the launches (int4.cpu.cpp, int4.cu), and a code's arithmetic.
#include "rooftile/core/rows.h"

namespace rooftile {

/// Rows in either direction. Of kPacked a column is a byte, of kScales and kZeros a group.
struct Int4Problem {
  enum { kValues, kPacked, kScales, kZeros };
  Rows<4> rows;
  void* values;  ///< x, or y
  std::uint8_t* packed;
  void* scales;
  std::uint8_t* zeros;  ///< null: symmetric
  std::int64_t group;   ///< at most K, rounded up to an even number
  DType dtype, scale_type;

  constexpr std::int64_t groups() const { return (rows.columns + group - 1) / group; }
};

inline constexpr float kInt4Middle = 8;  ///< the zero of a group without one

/// To the nearest integer, ties to even; within ±2^22.
constexpr float int4_nearest(float x) { return (x + 0x1.8p23f) - 0x1.8p23f; }

/// From `low` <= 0 <= `high`, before it is rounded to its dtype.
constexpr float int4_scale(float low, float high, bool symmetric) {
  return symmetric ? (-low > high ? -low : high) / 7 : (high - low) / 15;
}
constexpr float int4_clamp(float x, float least, float most) {
  return x < least ? least : x > most ? most : x;
}
/// NaN counts as 0.
constexpr float int4_quotient(float x, float scale) {
  const float its = x / scale;
  return its == its ? int4_nearest(int4_clamp(its, -16, 16)) : 0;
}
constexpr float int4_zero(float low, float scale) { return int4_clamp(int4_quotient(-low, scale), 0, 15); }
constexpr int int4_code(float x, float scale, float zero) {
  return static_cast<int>(int4_clamp(int4_quotient(x, scale) + zero, 0, 15));
}

}  // namespace rooftile
