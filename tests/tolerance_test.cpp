// Whether an output is right: what a tolerance lets through, and what it does not.
#include "rooftile/harness/check/compare.h"

#include <gtest/gtest.h>

#include <cmath>

namespace rooftile::harness {
namespace {

std::string compared(DType type, double expected, double magnitude, double got, double per_magnitude = 0) {
  const Operand output{"y", Operand::Kind::output, type, {1}};
  const Answer answer{{expected}, {0}, {magnitude}, encode(type, std::vector<double>{expected})};
  return compare({false, per_magnitude, 0}, output, answer, encode(type, std::vector<double>{got})).failure;
}

TEST(Compare, HalfAUlpOfTheOutputIsRight) {
  EXPECT_EQ(compared(DType::bf16, 1 + 0x1p-8, 0, 1), "");
  EXPECT_NE(compared(DType::bf16, 1 + 0x1p-8, 0, 1 + 0x1p-6), "");
  EXPECT_EQ(compared(DType::u8, 7.5, 0, 8), "");
  EXPECT_NE(compared(DType::u8, 7.4, 0, 8), "");
  EXPECT_EQ(compared(DType::f16, 0x1p-26, 0, 0), "");  // half of the smallest subnormal
  EXPECT_NE(compared(DType::f16, 0x1p-24, 0, 0), "");
}

TEST(Compare, InfinitiesAndNaNsMustMatch) {
  const double inf = HUGE_VAL, nan = std::nan("");
  EXPECT_EQ(compared(DType::f32, inf, 0, inf), "");
  EXPECT_NE(compared(DType::f32, inf, 0, -inf), "");
  EXPECT_NE(compared(DType::f32, inf, 0, 1), "");
  EXPECT_NE(compared(DType::f32, 1, 0, inf), "");
  EXPECT_EQ(compared(DType::f32, nan, 0, nan), "");
  EXPECT_NE(compared(DType::f32, nan, 0, 0), "");
  EXPECT_NE(compared(DType::f32, 0, 0, nan), "");
  EXPECT_EQ(compared(DType::f16, 65519, 1, inf, 2),
            "");  // within the tolerance of the number that rounds to it
  EXPECT_NE(compared(DType::f16, 60000, 1, inf, 2), "");
  EXPECT_EQ(compared(DType::f16, 1e9, 0, inf), "");
  EXPECT_NE(compared(DType::f16, 1e9, 0, -inf), "");
  // Terms of 1e20 that cancel: the sum may come out below f16's range, if an error of 1e13 may be.
  EXPECT_EQ(compared(DType::f16, 1e9, 1e20, -inf, 1e-7), "");
  EXPECT_NE(compared(DType::f16, 1e9, 1e20, -inf, 1e-12), "");
  // Terms that overflow the accumulator: what they come to is not the kernel's fault; another number is.
  const Operand output{"y", Operand::Kind::output, DType::f32, {1}};
  const Answer answer{{1e30}, {0}, {1e40}, encode(DType::f32, std::vector<double>{1e30})};
  for (double got : {inf, nan})
    EXPECT_EQ(
        compare({false, 0x1p-24, 0, 0x1p128}, output, answer, encode(DType::f32, std::vector<double>{got}))
            .failure,
        "");
  EXPECT_NE(
      compare({false, 0x1p-24, 0, 0x1p128}, output, answer, encode(DType::f32, std::vector<double>{1e34}))
          .failure,
      "");
}

TEST(Compare, PrintsNaNsWithoutTheirSigns) {
  for (const double nan : {std::nan(""), -std::nan("")}) {
    EXPECT_EQ(compared(DType::f32, nan, 0, 0), "y[0]: expected nan, got 0");
    EXPECT_EQ(compared(DType::f32, 0.5, 0, nan), "y[0]: expected 0.5, got nan");
  }
}

TEST(Compare, ExactMeansEveryBit) {
  const Operand output{"y", Operand::Kind::output, DType::f32, {1}};
  const auto exact = [&](double expected, double got) {
    const Answer answer{{expected}, {0}, {0}, encode(DType::f32, std::vector<double>{expected})};
    return compare({true, 0, 0}, output, answer, encode(DType::f32, std::vector<double>{got})).failure;
  };
  EXPECT_EQ(exact(1, 1), "");
  EXPECT_NE(exact(1, 1 + 0x1p-23), "");
  EXPECT_NE(exact(0.0, -0.0), "");
  EXPECT_EQ(exact(std::nan(""), std::nan("")), "");
}

TEST(Compare, FindsADifferenceOfTheLastElement) {
  const std::vector<float> a(100, 1);
  std::vector<float> b = a;
  const auto difference = [&] {
    return first_difference(DType::f32, reinterpret_cast<const std::byte*>(a.data()),
                            reinterpret_cast<const std::byte*>(b.data()), a.size() * sizeof(float));
  };
  EXPECT_EQ(difference(), -1);
  b.back() = std::nanf("");
  EXPECT_EQ(difference(), 99);
}

TEST(Compare, CountsUlps) {
  const Operand output{"y", Operand::Kind::output, DType::f32, {5}};
  const std::vector<double> right{1, 1, 1, -1, 0}, got{1, 1 + 0x1p-23, 1 + 0x1p-21, -1 - 0x1p-23, -0x1p-149};
  const Answer answer{right, std::vector<double>(5), std::vector<double>(5, 1), encode(DType::f32, right)};
  const Comparison c = compare({false, 1, 0}, output, answer, encode(DType::f32, got));
  EXPECT_EQ(c.ulps[0], 1);
  EXPECT_EQ(c.ulps[1], 3);
  EXPECT_EQ(c.ulps[2], 0);
  EXPECT_EQ(c.ulps[3], 1);
}

TEST(Convert, Bf16OfADoubleIsRoundedOnce) {
  for (double x : {1 + 0x1p-8, 1 + 0x1p-8 + 0x1p-40, 1 + 3 * 0x1p-8 - 0x1p-40, -0x1p-133, 0x1p-134,
                   0x1.8p-134, 0x1.ff7fffffp127, 0x1.ff8p127, -1e300, 0.0, -0.0, HUGE_VAL}) {
    std::uint16_t code = 0;
    encode(DType::bf16, &x, 1, reinterpret_cast<std::byte*>(&code));
    EXPECT_EQ(code, from_double<bf16>(x).bits) << x;
  }
}

}  // namespace
}  // namespace rooftile::harness
