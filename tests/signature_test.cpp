// What follows from a signature: refusals, options, calls by lists, and the views of split tensors.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>
#include <sstream>
#include <string>
#include <vector>

#include "rooftile/core/signature.h"
#include "rooftile/core/view_of.h"
#include "rooftile/ops/activation/activation.h"
#include "rooftile/ops/gated/gated.h"
#include "rooftile/ops/rms_norm/rms_norm.h"

namespace rooftile {
namespace {

const Queue& queue() {
  static const Queue q = Queue::cpu({.threads = 1});
  return q;
}

const Op& op_of(const char* function) {
  for (const Op* op : all_ops())
    if (std::string(op->function) == function) return *op;
  throw std::runtime_error(function);
}

/// What Python's gradients are made from: see Op::direction and Signature::Operand::sum_of.
TEST(Signature, BackwardsSpeakOfTheirForwardsOperands) {
  const auto has = [](const Signature& s, const std::string& name, bool output) {
    for (int o = 0; o < s.operand_count(); ++o)
      if (name == s.operands[o].name && output == (s.operands[o].role != Signature::Role::input)) return true;
    return false;
  };
  int backwards = 0;
  for (const Op* op : all_ops()) {
    const Signature& s = op->signature;
    for (int o = 0; o < s.operand_count(); ++o) {
      std::istringstream summands(s.operands[o].sum_of);
      for (std::string word; summands >> word;)
        EXPECT_TRUE(has(s, word, false)) << op->function << " " << s.operands[o].name << " " << word;
    }
    if (std::string(op->direction) != "backward") continue;
    ++backwards;
    const Signature* forward = nullptr;
    for (const Op* other : all_ops())
      if (std::string(other->direction) == "forward" && std::string(other->name) == op->name) {
        EXPECT_EQ(forward, nullptr) << op->name << " has two forwards";
        forward = &other->signature;
      }
    ASSERT_NE(forward, nullptr) << op->function << " has no forward";
    for (int o = 0; o < s.operand_count(); ++o) {
      const std::string name = s.operands[o].name;
      const bool input = s.operands[o].role == Signature::Role::input;
      const bool gradient = name[0] == 'd' && has(*forward, name.substr(1), input);
      const bool given = input && (has(*forward, name, false) || has(*forward, name, true));
      EXPECT_TRUE(gradient || given) << op->function << ": " << name << " is no operand of "
                                     << forward->function << " and no gradient of one";
    }
    for (int k = 0; k < s.option_count(); ++k) {
      bool known = false;
      for (int f = 0; f < forward->option_count(); ++f)
        known = known || std::string(forward->options[f].name) == s.options[k].name;
      EXPECT_TRUE(known) << op->function << ": its forward has no option " << s.options[k].name;
    }
  }
  EXPECT_GE(backwards, 9);
}

TEST(Signature, RefusesWithTheSentencesOfOtherFunctions) {
  float x[12] = {}, y[12] = {};
  std::int32_t integers[12] = {};
  const auto message = [](const Status& s) { return std::string(s.message()); };
  EXPECT_EQ(message(gelu(queue(), {}, view(y, {12}))), "gelu: x is absent");
  EXPECT_EQ(message(gelu(queue(), view(integers, {12}), view(y, {12}))),
            "gelu: x is 12 i32, must be one of f64, f32, f16, bf16");
  EXPECT_EQ(message(gelu(queue(), view(x, {3, 4}), view(y, {4, 3}))),
            "gelu: y is 4x3 f32, must be 3x4 where x is 3x4 f32");
  EXPECT_EQ(message(gelu(queue(), view(x, {3}), view(reinterpret_cast<f16*>(y), {3}))),
            "gelu: y is 3 f16, must be f32 as x is");
  EXPECT_EQ(message(gelu(queue(), view(x, {3}), view(y, {3}, {0}))),
            "gelu: output y is 3 f32 (strides 0): its strides place several elements at one address");
  EXPECT_NE(message(gelu(queue(), view(x, {8}), view(x + 1, {8}))).find("it may be the same view or apart"),
            std::string::npos);
  EXPECT_EQ(message(silu(queue(), view(x, {3}), view(y, {3}), {.beta = NAN})),
            "silu: beta is nan, must be finite");
  EXPECT_NE(
      message(relu(queue(), view(x, {3}), view(y, {3}), {.variant = "fast"})).find("no variant \"fast\""),
      std::string::npos);
  // Two outputs may not be one another.
  EXPECT_NE(message(swiglu_backward(queue(), view(x, {4}), view(x + 4, {4}), view(x + 8, {4}), view(y, {4}),
                                    view(y, {4})))
                .find("overlaps dgate"),
            std::string::npos);
}

TEST(Signature, StatisticsAreF64AsTheirRowsAre) {
  const double wide[12] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
  const float narrow[12] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
  double y[12], wide_rstd[3];
  float narrow_y[12], narrow_rstd[3];
  const auto message = [](const Status& s) { return std::string(s.message()); };
  const RmsNormInputs in{.x = view(wide, {3, 4})}, narrow_in{.x = view(narrow, {3, 4})};
  EXPECT_EQ(message(rms_norm(queue(), in, {.y = view(y, {3, 4}), .rstd = view(narrow_rstd, {3})})),
            "rms_norm: rstd is 3 f32, must be f64 as x is");
  EXPECT_EQ(
      message(rms_norm(queue(), narrow_in, {.y = view(narrow_y, {3, 4}), .rstd = view(wide_rstd, {3})})),
      "rms_norm: rstd is 3 f64, must be one of f32");
  EXPECT_TRUE(rms_norm(queue(), in, {.y = view(y, {3, 4}), .rstd = view(wide_rstd, {3})}));
  EXPECT_DOUBLE_EQ(wide_rstd[0], 1 / std::sqrt(7.5 + 1e-6));
  EXPECT_DOUBLE_EQ(y[3], 4 / std::sqrt(7.5 + 1e-6));

  // What the library makes where it is asked what an output would be.
  const Signature& s = op_of("rms_norm").signature;
  const ConstView absent{}, wide_x = view(wide, {3, 4}), narrow_x = view(narrow, {3, 4});
  const double options[] = {1e-6, 0};
  for (const ConstView* x : {&wide_x, &narrow_x}) {
    const ConstView* views[] = {x, &absent, &absent, &absent, &absent, &absent};
    View rstd;
    ASSERT_TRUE(infer(s, Call{views, options}, 5, rstd));
    EXPECT_EQ(rstd.dtype, x->dtype);
  }
}

TEST(Signature, CallsByLists) {
  const float x[2] = {-1, 2};
  float y[2], same[2];
  const ConstView in = view(x, {2}), out = view(y, {2});
  ASSERT_TRUE(call(queue(), op_of("silu"), {&in, &out}, {0.5}, nullptr).ok());
  ASSERT_TRUE(silu(queue(), in, view(same, {2}), {.beta = 0.5f}).ok());
  EXPECT_EQ(y[0], same[0]);
  EXPECT_EQ(y[1], same[1]);
  EXPECT_NEAR(y[1], 2 / (1 + std::exp(-1.0)), 1e-6);
  EXPECT_STREQ(call(queue(), op_of("gelu"), {&in, &out}, {0.5}, nullptr).message(),
               "gelu: tanh is 0.5, must be 0 or 1");
}

TEST(Signature, ShapeLetters) {
  constexpr Signature::Types kF{'F', {DType::f32}}, kW{'W', {DType::f64}, 'F'};
  static constexpr Signature kProduct{"product",
                                      {kF, kW},
                                      {input("a", 'F', "... M K"), input("b", 'F', "K N"),
                                       optional(input("scale", 'W', "N")), output("c", 'F', "... M N")}};
  static_assert(kProduct.operand_count() == 4 && kProduct.output_count() == 1 &&
                kProduct.option_count() == 0);
  static float memory[4][64];
  double doubles[4];
  const auto message = [&](const ConstView& a, const ConstView& b, const ConstView& scale,
                           const ConstView& c) {
    const ConstView* views[] = {&a, &b, &scale, &c};
    return std::string(check(kProduct, {views, nullptr}).message());
  };
  const View a = view(memory[0], {2, 3, 4}), b = view(memory[1], {4, 5}), c = view(memory[3], {2, 3, 5});
  EXPECT_EQ(message(a, b, {}, c), "");
  EXPECT_EQ(message(a, b, view(memory[2], {5}), c), "") << "an f32 scale, as a";
  EXPECT_EQ(message(a, b, view(doubles, {4}), c), "product: scale is 4 f64, must be 5 where b is 4x5 f32");
  EXPECT_EQ(message(a, view(memory[1], {3, 5}), {}, c),
            "product: b is 3x5 f32, must be 4xN where a is 2x3x4 f32");
  EXPECT_EQ(message(a, a, {}, c), "product: b is 2x3x4 f32, must be 4xN where a is 2x3x4 f32");
  EXPECT_EQ(message(a, b, {}, view(memory[3], {3, 5})),
            "product: c is 3x5 f32, must be 2x3x5 where a is 2x3x4 f32");
  EXPECT_EQ(message(view(memory[0], {4}), b, {}, c), "product: a is 4 f32, needs at least 2 dimensions");
}

TEST(Signature, AnOperandFollowsTheDTypeOfALaterOne) {
  static constexpr Signature kLate{
      "late",
      {{'F', {DType::f32}}, {'T', {DType::f32, DType::f16, DType::bf16}}, {'B', {DType::f32}, 'T'}},
      {input("x", 'F', "N"), optional(input("bias", 'B', "N")), output("y", 'T', "N")},
      {}};
  static float x[4];
  static f16 halves[4];
  static bf16 bf16s[4], y[4];
  const auto message = [&](const ConstView& bias) {
    const ConstView of_x = view(x, {2}), of_y = view(y, {2});
    const ConstView* views[] = {&of_x, &bias, &of_y};
    return std::string(check(kLate, {views, nullptr}).message());
  };
  EXPECT_EQ(message({}), "");
  EXPECT_EQ(message(view(x + 2, {2})), "");
  EXPECT_EQ(message(view(bf16s, {2})), "");
  EXPECT_EQ(message(view(halves, {2})), "late: bias is 2 f16, must be f32, or bf16 as y is");
}

TEST(Signature, SizesChoicesAndWorkspaces) {
  constexpr Signature::Types kF{'F', {DType::f32}}, kW{'W', {DType::f32}, 'T'},
      kT{'T', {DType::f32, DType::bf16}};
  static constexpr Signature kOdd{
      "odd",
      {kF, kT, kW},
      {input("rgb", 'F', "... 3"), input("x", 'T', "C"), optional(input("w", 'W', "C")),
       output("sum", 'F', "1")},
      {choice("mode", "fast exact slow"), real("eps", 1e-5, 0), any_real("scale", 1)}};
  static float memory[4][64];
  static double doubles[2];
  const ConstView rgb = view(memory[0], {2, 3}), x = view(memory[1], {4}), sum = view(memory[3], {1, 1});
  const auto message = [&](const ConstView& first, const ConstView& w, const ConstView& last,
                           std::array<double, 3> options = {0, 0, NAN}, Workspace workspace = {}) {
    const ConstView* views[] = {&first, &x, &w, &last};
    return std::string(check(kOdd, {views, options.data(), nullptr, workspace}).message());
  };
  EXPECT_EQ(message(rgb, {}, sum), "");
  EXPECT_EQ(message(view(memory[0], {2, 4}), {}, sum), "odd: rgb is 2x4 f32, must be ...x3");
  EXPECT_EQ(message(rgb, {}, view(memory[3], {2})), "odd: sum is 2 f32, must have one element");
  EXPECT_EQ(message(rgb, view(doubles, {2}), sum), "odd: w is 2 f64, must be f32 as x is");
  EXPECT_EQ(message(rgb, {}, sum, {3, 0, 0}), "odd: mode is 3, must be fast (0), exact (1) or slow (2)");
  EXPECT_EQ(message(rgb, {}, sum, {NAN, 0, 0}), "odd: mode is nan, must be fast (0), exact (1) or slow (2)");
  EXPECT_EQ(message(rgb, {}, sum, {1, -1, 0}), "odd: eps is -1, must be finite and not negative");
  EXPECT_EQ(message(rgb, {}, sum, {1, 0, INFINITY}, {memory[2], 64}), "");
  EXPECT_NE(message(rgb, {}, sum, {1, 0, 0}, {memory[1] + 3, 64}).find("overlaps x (4 f32"),
            std::string::npos);
}

TEST(Gated, HalvesOfATensor) {
  std::vector<float> x(3 * 8), y(3 * 4), apart(3 * 4);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 7) - 3;
  // [halves]
  const auto halves = split_halves(ConstView(view(x.data(), {3, 8})));
  ASSERT_TRUE(swiglu(queue(), halves.first, halves.last, view(y.data(), {3, 4})).ok());
  // [/halves]
  for (int r = 0; r < 3; ++r)
    for (int i = 0; i < 4; ++i) {
      const double gate = x[static_cast<std::size_t>(r * 8 + i)],
                   up = x[static_cast<std::size_t>(r * 8 + 4 + i)];
      EXPECT_NEAR(y[static_cast<std::size_t>(r * 4 + i)], gate / (1 + std::exp(-gate)) * up, 1e-5);
    }
  // The gate last, and over itself.
  ASSERT_TRUE(geglu(queue(), halves.last, halves.first, view(apart.data(), {3, 4})).ok());
  const auto own = split_halves(view(x.data(), {3, 8}));
  ASSERT_TRUE(geglu(queue(), own.last, own.first, own.last).ok());
  for (int r = 0; r < 3; ++r)
    for (int i = 0; i < 4; ++i)
      EXPECT_EQ(x[static_cast<std::size_t>(r * 8 + 4 + i)], apart[static_cast<std::size_t>(r * 4 + i)]);
  // Backwards strides, and what has no halves.
  const auto reversed = split_halves(ConstView(view(x.data() + 7, {8}, {-1})));
  EXPECT_EQ(reversed.last.data, x.data() + 3);
  EXPECT_FALSE(split_halves(ConstView(view(x.data(), {3, 7}))).first.present());
  EXPECT_FALSE(split_halves(ConstView(scalar_view(x.data()))).last.present());
  EXPECT_FALSE(split_halves(ConstView()).last.present());
  EXPECT_STREQ(
      swiglu(queue(), split_halves(ConstView(view(x.data(), {7}))).first, halves.last, view(y.data(), {3, 4}))
          .message(),
      "swiglu: gate is absent");
}

TEST(Activation, Limits) {
  const float infinity = std::numeric_limits<float>::infinity();
  const float x[3] = {-infinity, infinity, NAN};
  float y[3];
  const auto expect = [&](Status s, float low, float high, const char* what) {
    ASSERT_TRUE(s.ok()) << s.message();
    EXPECT_EQ(y[0], low) << what;
    EXPECT_EQ(y[1], high) << what;
    EXPECT_TRUE(std::isnan(y[2])) << what;
  };
  const ConstView in = view(x, {3});
  const View out = view(y, {3});
  expect(relu(queue(), in, out), 0, infinity, "relu");
  expect(sigmoid(queue(), in, out), 0, 1, "sigmoid");
  expect(tanh(queue(), in, out), -1, 1, "tanh");
  expect(silu(queue(), in, out), 0, infinity, "silu");
  expect(gelu(queue(), in, out), 0, infinity, "gelu");
  expect(gelu(queue(), in, out, {.tanh = true}), 0, infinity, "gelu, tanh");
}

}  // namespace
}  // namespace rooftile
