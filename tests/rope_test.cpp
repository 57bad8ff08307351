// What the cases of rooftile/ops/rope cannot say: frequencies against numbers of transformers' formulas, keys
// left out, both operands in place, and the sentences.
#include "rooftile/ops/rope/rope.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace rooftile {
namespace {

using Kind = RopeScaling::Kind;

TEST(RopeFrequencies, AreThoseOfTransformers) {
  // modeling_rope_utils.py in f64: d = 128, base 500000, factor 8, 8192 positions, of which 24576 are seen.
  struct {
    Kind kind;
    double length, at_0, at_20, at_32, at_63, attention;
  } const all[] = {{Kind::none, 0, 1, 0.0165604401, 0.00141421356, 2.45514079e-06, 1},
                   {Kind::linear, 0, 0.125, 0.00207005501, 0.000176776695, 3.06892599e-07, 1},
                   {Kind::ntk, 24576, 1, 0.00673679246, 0.000335370663, 1.44420047e-07, 1},
                   {Kind::ntk, 0, 1, 0.00855808587, 0.000491815966, 3.06892599e-07, 1},
                   {Kind::yarn, 0, 1, 0.0148556889, 0.000395147907, 3.06892599e-07, 1.20794415},
                   {Kind::llama3, 0, 1, 0.0165604401, 0.000524846161, 3.06892599e-07, 1}};
  for (const auto& its : all) {
    std::vector<float> f(64);
    double attention = 0;
    const Status s = rope_frequencies(
        f, 500000, {.kind = its.kind, .factor = 8, .original_length = 8192, .length = its.length}, attention);
    ASSERT_TRUE(s) << s.message();
    EXPECT_NEAR(f[0], its.at_0, 1e-7);
    EXPECT_NEAR(f[20] / its.at_20, 1, 1e-7);
    EXPECT_NEAR(f[32] / its.at_32, 1, 1e-7);
    EXPECT_NEAR(f[63] / its.at_63, 1, 1e-7);
    EXPECT_NEAR(attention, its.attention, 1e-8);
  }
}

TEST(RopeFrequencies, RefusesWhatIsOutOfRange) {
  std::vector<float> f(8);
  double attention = 0;
  const auto message = [&](double base, const RopeScaling& scaling) {
    return std::string(rope_frequencies(f, base, scaling, attention).message());
  };
  EXPECT_EQ(message(1, {}), "rope_frequencies: base is 1, must be finite and above 1");
  EXPECT_EQ(message(1e4, {.kind = Kind::linear, .factor = 0.5}),
            "rope_frequencies: factor is 0.5, must be finite and 1 or more");
  EXPECT_EQ(message(1e4, {.kind = Kind::yarn}),
            "rope_frequencies: original_length is 0, must be finite and above 0");
  EXPECT_EQ(message(1e4, {.kind = Kind::yarn, .original_length = 10, .beta_slow = 0}),
            "rope_frequencies: beta_fast is 32, must be finite and beta_slow or more, which is above 0");
  EXPECT_EQ(
      message(1e4, {.kind = Kind::llama3, .original_length = 10, .high_freq_factor = 1}),
      "rope_frequencies: high_freq_factor is 1, must be finite and above low_freq_factor, which is above "
      "0");
  EXPECT_EQ(message(std::numeric_limits<double>::quiet_NaN(), {}),
            "rope_frequencies: base is nan, must be finite and above 1");
}

std::vector<float> normal(std::int64_t count) {
  std::mt19937 random(1);
  std::normal_distribution<float> next;
  std::vector<float> values(static_cast<std::size_t>(count));
  for (float& v : values) v = next(random);
  return values;
}

TEST(Rope, KeysMayBeLeftOutAndBothBeInPlace) {
  const Queue queue = Queue::cpu();
  for (bool interleaved : {false, true}) {
    const RopeOptions options{.interleaved = interleaved, .rotary = 12, .offset = 3};
    std::vector<float> q = normal(2 * 5 * 3 * 18), k = normal(2 * 5 * 2 * 18), alone(q.size()), yq(q.size()),
                       yk(k.size());
    const auto of = [](std::vector<float>& x, int heads) { return view(x.data(), {2, 5, heads, 18}); };
    Status s = rope(queue, {.q = of(q, 3), .k = of(k, 2)}, {.q = of(yq, 3), .k = of(yk, 2)}, options);
    ASSERT_TRUE(s) << s.message();
    s = rope(queue, {.q = of(q, 3)}, {.q = of(alone, 3)}, options);
    ASSERT_TRUE(s) << s.message();
    EXPECT_EQ(alone, yq);
    s = rope(queue, {.q = of(q, 3), .k = of(k, 2)}, {.q = of(q, 3), .k = of(k, 2)}, options);
    ASSERT_TRUE(s) << s.message();
    EXPECT_EQ(q, yq);
    EXPECT_EQ(k, yk);
    // The backward turns back.
    s = rope_backward(queue, {.dyq = of(yq, 3)}, {.dq = of(yq, 3)}, options);
    ASSERT_TRUE(s) << s.message();
    const std::vector<float> first = normal(2 * 5 * 3 * 18);
    for (std::size_t i = 0; i < first.size(); ++i) EXPECT_NEAR(yq[i], first[i], 1e-5);
  }
}

TEST(Rope, RefusesInSentences) {
  const Queue queue = Queue::cpu();
  std::vector<float> q(2 * 3 * 8), f(5);
  const View x = view(q.data(), {1, 2, 3, 8});
  const auto message = [&](const RopeInputs& in, const RopeOutputs& out, const RopeOptions& options) {
    return std::string(rope(queue, in, out, options).message());
  };
  EXPECT_EQ(message({.q = x, .k = x}, {.q = x}, {}), "rope: yk is absent");
  EXPECT_EQ(message({.q = x}, {.q = x, .k = x}, {}), "rope: k is absent");
  EXPECT_EQ(message({.q = x}, {.q = x}, {.rotary = 3}), "rope: must have rotary % 2 = 0 where rotary is 3");
  EXPECT_EQ(message({.q = x}, {.q = x}, {.rotary = 10}),
            "rope: must have rotary <= D where rotary is 10, D is 8");
  EXPECT_EQ(message({.q = x, .inv_freq = view(f.data(), {5})}, {.q = x}, {}),
            "rope: must have 2*R <= D where R is 5, D is 8");
  EXPECT_EQ(message({.q = x, .inv_freq = view(f.data(), {4})}, {.q = x}, {.rotary = 4}),
            "rope: must have rotary % (2*R) = 0 where rotary is 4, R is 4");
  EXPECT_EQ(message({.q = x}, {.q = x}, {.attention_factor = -1}),
            "rope: attention_factor is -1, must be a number from 0 to 1024");
}

}  // namespace
}  // namespace rooftile
