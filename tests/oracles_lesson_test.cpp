// The claims of docs/course/17_oracles_and_tolerances.md, computed.
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "rooftile/harness/check/compare.h"
#include "rooftile/ops/softmax/oracle.h"

namespace rooftile::harness {
namespace {

// [allclose]
/// The comparison that most projects use.
bool allclose(const std::vector<double>& got, const std::vector<double>& want, double rtol, double atol) {
  for (std::size_t i = 0; i < want.size(); ++i)
    if (!(std::fabs(got[i] - want[i]) <= atol + rtol * std::fabs(want[i]))) return false;
  return true;
}
// [/allclose]

/// The error that one output element may have.
double tolerance_of(const Tolerance& rule, const Case& c, const char* variant, double want,
                    double magnitude) {
  const double u_output = std::ldexp(1, -significand_bits(c.dtype));  // half a step of the format
  const double u_accumulator = std::ldexp(1, -significand_bits(rule.accumulator(c)));
  const double last_rounding = std::max(u_output * std::fabs(want), smallest_subnormal(c.dtype) / 2);
  return last_rounding + rule.c * std::sqrt(rule.chain(c, variant)) * u_accumulator * magnitude;
}

struct Row {
  std::vector<double> want, magnitude;
};

/// The oracle on one row of `columns` standard normal elements.
Row softmax_row(const Case& c) {
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  std::vector<double> x(static_cast<std::size_t>(c.shape.back()));
  for (double& v : x) v = static_cast<double>(normal(random));
  Arrays<double> a;
  a["y"] = Array<double>(std::vector<double>(x.size()));
  a["x"] = Array<double>(std::move(x));
  SoftmaxOracle::run<double>(c, a);
  return {a["y"].values(), a["y"].magnitudes()};
}

bool passes(const Case& c, const Row& row, const std::vector<double>& got) {
  const Tolerance& rule = find_spec("softmax")->tolerance;
  for (std::size_t i = 0; i < got.size(); ++i)
    if (!(std::fabs(got[i] - row.want[i]) <= tolerance_of(rule, c, "tile", row.want[i], row.magnitude[i])))
      return false;
  return true;
}

// The numbers of the worked example.
TEST(OraclesLesson, WorkedExample) {
  const Case c{{1, 1000}, DType::f32, {}};
  const Tolerance& rule = find_spec("softmax")->tolerance;
  EXPECT_EQ(rule.c, 2);
  EXPECT_EQ(rule.chain(c, "tile"), 79);  // 1000 / 16 lanes, rounded up, and 16 for the tree
  EXPECT_EQ(rule.chain(c, "01_scalar"), 1001);
  // The row's largest element, y = 0.03, has a scale of y·(1 + 0); one 5 below it y·(1 + 5).
  EXPECT_NEAR(tolerance_of(rule, c, "tile", 0.03, 0.03) / 0.03, 1.12e-6, 0.005e-6);
  EXPECT_NEAR(tolerance_of(rule, c, "tile", 2e-4, 2e-4 * 6) / 2e-4, 6.4e-6, 0.05e-6);
  const Case half{{1, 1000}, DType::bf16, {}};
  EXPECT_NEAR(tolerance_of(rule, half, "tile", 0.03, 0.03) / 0.03, 3.9e-3, 0.05e-3);
  // The lesson's formula is the one that the check uses.
  const double check =
      std::ldexp(0.03, -24) + limits_of(*find_spec("softmax"), c, "tile").per_magnitude * 0.18;
  EXPECT_DOUBLE_EQ(tolerance_of(rule, c, "tile", 0.03, 0.18), check);
}

// A vocabulary's row: the largest probability is below the absolute tolerance that half precision is tested
// with.
TEST(OraclesLesson, AllcloseTakesZerosForASoftmax) {
  const Case c{{1, 50257}, DType::f32, {}};
  const Row row = softmax_row(c);
  const std::vector<double> zeros(row.want.size(), 0.0);
  EXPECT_TRUE(allclose(zeros, row.want, 1e-5, 2e-3));  // "all close"
  EXPECT_FALSE(passes(c, row, zeros));                 // the derived tolerance is not so kind
  EXPECT_TRUE(passes(c, row, row.want));
}

// One element in a thousand left out of the sum: every output is off by that share, 1e-3.
TEST(OraclesLesson, ALostTailIsASmallRelativeError) {
  const Case c{{1, 1000}, DType::f32, {}};
  const Row row = softmax_row(c);
  std::vector<double> got = row.want;
  for (double& y : got) y /= 1 - row.want.back();
  EXPECT_TRUE(allclose(got, row.want, 1e-3, 1e-3));
  EXPECT_FALSE(passes(c, row, got));
}

// Two runs of one wrong kernel agree with each other in every bit.
TEST(OraclesLesson, TwoWrongResultsAgree) {
  const Case c{{1, 1000}, DType::f32, {}};
  const Row row = softmax_row(c);
  std::vector<double> once = row.want;
  for (double& y : once) y *= 2;
  const std::vector<double> again = once;
  EXPECT_TRUE(allclose(again, once, 0, 0));
  EXPECT_FALSE(passes(c, row, once));
}

// f32 results that went through bf16: off by 2^-8 at most.
TEST(OraclesLesson, AllcloseTakesBf16ForF32) {
  const Case c{{1, 1000}, DType::f32, {}};
  const Row row = softmax_row(c);
  std::vector<double> got = row.want;
  for (double& y : got) y = static_cast<double>(to_float(from_double<bf16>(y)));
  EXPECT_TRUE(allclose(got, row.want, 1e-2, 0));
  EXPECT_FALSE(allclose(got, row.want, 1e-3, 0));
  EXPECT_FALSE(passes(c, row, got));
}

// bf16 sums in place of f32 ones: the oracle in lower precision must be rejected.
TEST(OraclesLesson, ALowerPrecisionIsRejected) {
  const Case c{{1, 1000}, DType::f32, {}};
  const Row row = softmax_row(c);
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  std::vector<Rounded<bf16>> x(1000);
  for (Rounded<bf16>& v : x) v = Rounded<bf16>(static_cast<double>(normal(random)));
  Arrays<Rounded<bf16>> a;
  a["y"] = Array<Rounded<bf16>>(std::vector<Rounded<bf16>>(x.size()));
  a["x"] = Array<Rounded<bf16>>(std::move(x));
  find_spec("softmax")->oracle.bf16(c, a);
  std::vector<double> got;
  for (const Rounded<bf16>& y : a["y"].values()) got.push_back(y.value);
  EXPECT_FALSE(passes(c, row, got));
}

TEST(OraclesLesson, TheOracleCountsItsOperations) {
  const Case c{{1, 1000}, DType::f32, {}};
  Arrays<Counted> a;
  a["x"] = Array<Counted>(std::vector<Counted>(1000, Counted(0.5)));
  a["y"] = Array<Counted>(std::vector<Counted>(1000));
  Counted::operations() = 0;
  find_spec("softmax")->oracle.counted(c, a);
  EXPECT_EQ(double(Counted::operations()), find_spec("softmax")->flops(c));  // 10 an element
}

}  // namespace
}  // namespace rooftile::harness
