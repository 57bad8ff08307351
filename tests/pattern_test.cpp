// What the cases of `rooftile check` cannot say: that the pattern's polynomial stays within 0 … 1 and its
// bound for phases all around, and that a time's phase is right whatever its exponent.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "rooftile/ops/pattern/pattern.time.h"
#include "rooftile/ops/pattern/pattern.wave.h"

namespace rooftile {
namespace {

constexpr double kPi = 3.14159265358979323846;

TEST(Pattern, ValuesStayWithinTheirBound) {
  double worst = 0;
  for (std::uint64_t at = 0; at < std::uint64_t{1} << 32; at += 1021) {
    const auto phase = static_cast<std::uint32_t>(at);
    const float value = wave::value(phase);
    ASSERT_GE(value, 0) << at;
    ASSERT_LE(value, 1) << at;
    worst = std::max(worst, std::fabs(value - (0.5 + 0.5 * std::sin(std::ldexp(kPi * double(phase), -31)))));
  }
  EXPECT_LE(worst, 2.2 * 0x1p-24);
  EXPECT_GE(worst, 0x1p-25);  // else nothing was compared
  EXPECT_EQ(wave::value(0), 0.5f);
  EXPECT_EQ(wave::value(0x80000000u), 0.5f);
}

TEST(Pattern, TimesOfEveryExponent) {
  for (int exponent = -1074; exponent <= 53; ++exponent)
    for (const double t : {std::ldexp(1, exponent), -std::ldexp(1, exponent)}) {
      const double phase = std::ldexp(static_cast<double>(wave::phase_at(t, wave::kRates[0])), -64);
      EXPECT_NEAR(std::sin(2 * kPi * phase), std::sin(t), 2e-15) << t;
      EXPECT_NEAR(std::cos(2 * kPi * phase), std::cos(t), 2e-15) << t;
    }
  EXPECT_EQ(wave::phase_at(0, wave::kRates[1]), 0u);
  EXPECT_EQ(wave::phase_at(-0.0, wave::kRates[1]), 0u);
}

}  // namespace
}  // namespace rooftile
