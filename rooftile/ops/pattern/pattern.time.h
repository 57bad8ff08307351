#pragma once
// A time as phases, in integers: no rounding mode and no libm has a say.
#include <bit>
#include <cstdint>

namespace rooftile::wave {

inline constexpr double kMaxTime = 9007199254740992;  // 2^53: below, a double's whole part is an int64

/// A factor over 2π, in 2^-128ths of a turn.
struct TurnsPerSecond {
  std::uint64_t high, low;
};
inline constexpr TurnsPerSecond kRates[3] = {{0x28be60db9391054a, 0x7f09d5f47d4d3770},   // 1 / 2π
                                             {0x1c8543cce74bea1a, 0x8c207c2b2482da01},   // .7 / 2π
                                             {0x34f77dea3fd6207a, 0x71f32fbdd61794de}};  // 1.3 / 2π

inline std::uint64_t upper_product(std::uint64_t a, std::uint64_t b) {
  __extension__ using Wide = unsigned __int128;
  return static_cast<std::uint64_t>(static_cast<Wide>(a) * b >> 64);
}

/// t · rate modulo a turn, in 2^-64ths, at most 3 of them too few.
inline std::uint64_t phase_at(double t, const TurnsPerSecond& rate) {
  const auto bits = std::bit_cast<std::uint64_t>(t);
  const int exponent = static_cast<int>(bits >> 52 & 0x7ff) - 1075;  // of the significand's last bit
  if (exponent < -1075 + 1) return 0;                                // zero, or too small to turn
  const std::uint64_t significand = (bits & 0xfffffffffffff) | 0x10000000000000;
  std::uint64_t whole = 0, fraction = 0;  // |t| = whole + fraction / 2^64
  if (exponent >= 0) {
    whole = significand << exponent;
  } else if (exponent > -64) {
    whole = significand >> -exponent;
    fraction = significand << (64 + exponent);
  } else if (exponent > -128) {
    fraction = significand >> (-exponent - 64);
  }
  const std::uint64_t phase =
      whole * rate.high + upper_product(whole, rate.low) + upper_product(fraction, rate.high);
  return bits >> 63 ? 0 - phase : phase;
}

}  // namespace rooftile::wave
