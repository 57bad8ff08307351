// What the cases of `rooftile check` cannot say: that the box's division is exact for every radius, and how
// far the Gaussian's whole numbers are from the Gaussian.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "rooftile/ops/blur/blur.problem.h"

namespace rooftile {
namespace {

std::uint64_t divided(const BoxDivision& d, std::uint64_t sum) {
  return (sum + d.add) * d.multiplier >> 32 >> d.shift;
}

TEST(Blur, BoxDivisionIsExact) {
  for (std::int64_t radius = 0; radius <= 2047; ++radius) {
    const BoxDivision d = box_division(radius);
    const auto n = static_cast<std::uint64_t>((2 * radius + 1) * (2 * radius + 1));
    ASSERT_LT(255 * n + d.add, std::uint64_t{1} << 32) << radius;
    for (std::uint64_t q = 1; q <= 255; ++q) {
      const std::uint64_t first = q * n - n / 2;  // the least sum whose quotient is q
      ASSERT_EQ(divided(d, first - 1), q - 1) << "radius " << radius;
      ASSERT_EQ(divided(d, first), q) << "radius " << radius;
    }
    ASSERT_EQ(divided(d, 0), 0u) << radius;
    ASSERT_EQ(divided(d, 255 * n), 255u) << radius;
  }
}

/// The same division in floats, which the CPU takes for small radii: whether or not its fma rounds in
/// between.
TEST(Blur, BoxDivisionByFloatsIsExact) {
  for (int radius = 0; radius <= 63; ++radius) {
    const int n = (2 * radius + 1) * (2 * radius + 1);
    const auto inverse = static_cast<float>(1. / n), half = static_cast<float>(0.5 / n);
    for (int k = 0; k <= 2 * 255 + 1; ++k) {  // both sides of each step, and the ends
      const int sum = std::min(255 * n, std::max(0, (k + 1) / 2 * n - n / 2 - k % 2));
      const auto v = static_cast<float>(sum + n / 2);
      const volatile float product = v * inverse;
      ASSERT_EQ(static_cast<int>(std::fma(v, inverse, half)), (sum + n / 2) / n) << sum << " / " << n;
      ASSERT_EQ(static_cast<int>(product + half), (sum + n / 2) / n) << sum << " / " << n;
    }
  }
}

/// 255 times what the weights of one pass are off, both passes; half of a step, and what lies between the
/// passes.
TEST(Blur, GaussianIsWithinOne) {
  for (double sigma = 0.25; sigma <= kMaxSigma; sigma *= 1.01) {
    const GaussianWeights w = gaussian_weights(sigma);
    double sum = 0, off = 0;
    const int far = static_cast<int>(10 * sigma) + 2;
    for (int k = -far; k <= far; ++k) sum += std::exp(-0.5 * k * k / (sigma * sigma));
    int total = 0;
    for (int k = -far; k <= far; ++k) {
      const int weight = std::abs(k) <= w.radius ? w.at[std::abs(k)] : 0;
      total += weight;
      ASSERT_GE(weight, 0) << sigma;
      ASSERT_LT(k == 0 ? weight / 2 : weight, 1 << 15) << sigma;
      off += std::fabs(std::ldexp(weight, -w.bits) - std::exp(-0.5 * k * k / (sigma * sigma)) / sum);
    }
    ASSERT_EQ(total, 1 << w.bits) << sigma;
    ASSERT_EQ(w.at[0] % 2, 0) << sigma;
    // Weights of one sum: half of the differences are above, half below.
    const double between = std::ldexp(1, -kGaussianFraction - 1);
    ASSERT_LT(2 * 255 * off / 2 + between + 0.5, 1) << sigma;
  }
}

}  // namespace
}  // namespace rooftile
