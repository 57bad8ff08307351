#pragma once
// The angle of a rotation: cosine and sine of position · frequency, for any lanes of f64. In f64, since at
// position 10^6 an f32 angle is off by 0.03. A pair takes 30 operations per token, which all heads share.
#include "rooftile/tile/tile.h"

namespace rooftile::kernels {
using namespace tile;

// [turn]
/// cos and sin of an angle up to 2^31, off by 1e-10 at most. The angle less n·π/2 is exact: the first two
/// parts of π/2 have 22 bits, so that n of 31 bits times each is a double, and cancels without rounding. What
/// is left, up to π/4, goes to two Taylor polynomials: its cosine and sine, which an odd n swaps.
template <Lanes Angle>
ROOFTILE_TILE void rope_turn(const Angle& angle, Angle& cosine, Angle& sine) {
  constexpr double kTwoOverPi = 0x1.45f306dc9c883p-1, kMagic = 0x1.8p52;  // adding it leaves a whole number
  constexpr double kFirst = 0x1.921fbp0, kSecond = 0x1.5110bp-22, kThird = 0x1.18469898cc517p-44;
  const Angle shifted = angle * kTwoOverPi + kMagic, n = shifted - kMagic;
  const Angle r = ((angle - n * kFirst) - n * kSecond) - n * kThird, r2 = r * r;
  Angle s = r2 * (-1. / 39916800) + 1. / 362880;
  s = s * r2 - 1. / 5040;
  s = s * r2 + 1. / 120;
  s = s * r2 - 1. / 6;
  s = r + r * r2 * s;
  Angle c = r2 * (-1. / 3628800) + 1. / 40320;
  c = c * r2 - 1. / 720;
  c = c * r2 + 1. / 24;
  c = c * r2 - 0.5;
  c = c * r2 + 1.;
  // n in the last bits of `shifted`: n = 1: (-s, c), 2: (-c, -s), 3: (s, -c).
  const auto quadrant = bit_cast<std::int64_t>(shifted);
  const auto odd = (quadrant & std::int64_t{1}) != std::int64_t{0};
  const auto negative = [](const auto& n_of_it) { return (n_of_it & std::int64_t{2}) << 62; };
  cosine = bit_cast<double>(bit_cast<std::int64_t>(select(odd, s, c)) ^ negative(quadrant + std::int64_t{1}));
  sine = bit_cast<double>(bit_cast<std::int64_t>(select(odd, c, s)) ^ negative(quadrant));
}
// [/turn]

}  // namespace rooftile::kernels
