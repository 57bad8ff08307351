// Relations between sizes and options: their values, the refusals that they make, what an output's size
// follows from.
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "rooftile/core/relations.h"
#include "rooftile/core/signature.h"

namespace rooftile {
namespace {

using Names = std::map<std::string, std::int64_t, std::less<>>;
ValueOf in(const Names& names) {
  return {&names, [](const void* context, std::string_view name, std::int64_t& value) {
            const Names& all = *static_cast<const Names*>(context);
            const auto found = all.find(name);
            if (found != all.end()) value = found->second;
            return found != all.end();
          }};
}
std::int64_t value_of(const char* text, const Names& names = {}) {
  std::int64_t value = -999;
  EXPECT_EQ(evaluate(text, in(names), value), Evaluated::known) << text;
  return value;
}
Evaluated state_of(const char* text, const Names& names = {}) {
  std::int64_t value = 0;
  return evaluate(text, in(names), value);
}

TEST(Relations, AreArithmeticOfWholeNumbers) {
  EXPECT_EQ(value_of("2 + 3*4 - (5 - 1)/2"), 12);
  EXPECT_EQ(value_of("-7/2"), -4);  // quotients round down
  EXPECT_EQ(value_of("(0-7) % 2"), 1);
  EXPECT_EQ(value_of("7 / 0"), 0);
  EXPECT_EQ(value_of("7 % 0"), 7);
  EXPECT_EQ(value_of("(H + 2*padding - dilation*(R - 1) - 1)/stride + 1",
                     {{"H", 12}, {"padding", 4}, {"dilation", 3}, {"R", 3}, {"stride", 2}}),
            7);
  EXPECT_EQ(value_of("9223372036854775807 - 1"), INT64_MAX - 1);
}

TEST(Relations, SayWhatTheyCannotTell) {
  EXPECT_EQ(state_of("H + 1"), Evaluated::unknown_name);
  EXPECT_EQ(state_of("9223372036854775807 + 1"), Evaluated::out_of_range);
  EXPECT_EQ(state_of("H * H", {{"H", std::int64_t{1} << 40}}), Evaluated::out_of_range);
  for (const char* wrong : {"", "2 +", "(1", "1)", "2 2", "*", "&"})
    EXPECT_EQ(state_of(wrong), Evaluated::malformed) << wrong;
}

TEST(Relations, EachOfTheLibrarysIsWellFormed) {
  for (const Op* op : all_ops()) {
    std::string_view rest = op->signature.where;
    for (Relation r; next_relation(rest, r);) {
      ASSERT_TRUE(r.between == '=' || r.between == '<' || r.between == '>') << op->function << ": " << r.text;
      for (std::string_view side : {r.left, r.right}) {
        Names names{{"outer", 1}};
        for (int k = 0; k < op->signature.option_count(); ++k)
          if (op->signature.options[k].kind != Signature::Option::Kind::real)
            names[op->signature.options[k].name] = 1;
        for (int o = 0; o < op->signature.operand_count(); ++o) {
          const Signature::Shape& shape = op->signature.operands[o].shape;
          if (const char below = op->signature.operands[o].below) names[std::string(1, below)] = 1;
          for (int l = 0; l < shape.count; ++l) names[std::string(1, shape.letters[l])] = 1;
        }
        std::int64_t value = 0;
        EXPECT_EQ(evaluate(side, in(names), value), Evaluated::known) << op->function << ": " << side;
      }
    }
  }
}

// Forms of functions to come: convolution's output, heads in groups, blocks of a flattened tensor, indices.
constexpr Signature::Types kT{'T', {DType::f32}}, kI{'I', {DType::i32}};
constexpr Signature kConvolution{
    "conv2d",
    {kT},
    {input("x", 'T', "N C H W"), input("w", 'T', "K D R S"), output("y", 'T', "N K P Q")},
    {whole("stride", 1, 1, 64), whole("padding", 0, 0, 64), whole("groups", 1, 1)},
    "D = C/groups; C % groups = 0; P = (H + 2*padding - R)/stride + 1; Q = (W + 2*padding - S)/stride + 1"};
constexpr Signature kAttention{"attention",
                               {kT},
                               {input("q", 'T', "B S H D"), input("k", 'T', "B T G D"),
                                optional(input("bias", 'T', "B H S T")), output("y", 'T', "B S H D")},
                               {whole("window", -1, -1), real("dropout", 0, 0, 1)},
                               "H % G = 0"};
constexpr Signature kQuantize{
    "quantize",
    {kT, kI},
    {input("x", 'T', "..."), output("absmax", 'T', "B"), optional(output("code", 'I', "..."))},
    {whole("block", 64, 32, 4096)},
    "B = (outer + block - 1)/block"};

struct Call4 {
  std::vector<ConstView> views;
  std::vector<double> options;
  std::string message(const Signature& s) const {
    std::vector<const ConstView*> pointers;
    for (const ConstView& v : views) pointers.push_back(&v);
    return std::string(check(s, Call{pointers.data(), options.data()}).message());
  }
  std::string inferred(const Signature& s, int output) const {
    std::vector<const ConstView*> pointers;
    for (const ConstView& v : views) pointers.push_back(&v);
    View view;
    const Status status = infer(s, Call{pointers.data(), options.data()}, output, view);
    if (!status) return std::string(status.message());
    std::string text = name(view.dtype);
    for (int d = 0; d < view.rank; ++d) text += " " + std::to_string(view.shape[d]);
    return text;
  }
};
float memory[4][4096];
ConstView at(int place, std::initializer_list<Extent> sizes) {
  return detail::make_view<ConstView>(memory[place], DType::f32, static_cast<int>(sizes.size()),
                                      sizes.begin(), nullptr);
}

TEST(Signature, RelationsRefuseInWords) {
  const ConstView x = at(0, {1, 6, 9, 9}), w = at(1, {4, 3, 3, 3});
  EXPECT_EQ((Call4{{x, w, at(2, {1, 4, 4, 4})}, {2, 0, 2}}.message(kConvolution)), "");
  EXPECT_EQ((Call4{{x, w, at(2, {1, 4, 4, 5})}, {2, 0, 2}}.message(kConvolution)),
            "conv2d: y is 1x4x4x5 f32: Q is 5, must be 4 = (W + 2*padding - S)/stride + 1 where W is 9, "
            "padding is 0, S is "
            "3, stride is 2");
  EXPECT_EQ((Call4{{x, w, at(2, {1, 4, 4, 4})}, {2, 0, 3}}.message(kConvolution)),
            "conv2d: w is 4x3x3x3 f32: D is 3, must be 2 = C/groups where C is 6, groups is 3");
  EXPECT_EQ((Call4{{x, w, at(2, {1, 4, 4, 4})}, {0, 0, 2}}.message(kConvolution)),
            "conv2d: stride is 0, must be a whole number from 1 to 64");
  EXPECT_EQ((Call4{{x, w, at(2, {1, 4, 4, 4})}, {1.5, 0, 2}}.message(kConvolution)),
            "conv2d: stride is 1.5, must be a whole number from 1 to 64");
  EXPECT_EQ((Call4{{x, w, at(2, {1, 4, 4, 4})}, {1, 0, 0}}.message(kConvolution)),
            "conv2d: groups is 0, must be a whole number and at least 1");
  EXPECT_EQ((Call4{{at(0, {1, 2, 6, 8}), at(1, {1, 5, 4, 8}), {}, at(2, {1, 2, 6, 8})}, {-1, 0}}.message(
                kAttention)),
            "attention: must have H % G = 0 where H is 6, G is 4");
  EXPECT_EQ((Call4{{at(0, {1, 2, 6, 8}), at(1, {1, 5, 3, 8}), {}, at(2, {1, 2, 6, 8})}, {-1, 0}}.message(
                kAttention)),
            "");
  EXPECT_EQ((Call4{{at(0, {1, 2, 6, 8}), at(1, {1, 5, 3, 8}), {}, at(2, {1, 2, 6, 8})}, {-1, 2}}.message(
                kAttention)),
            "attention: dropout is 2, must be a number from 0 to 1");
}

TEST(Signature, OutputsFollowFromInputsAndRelations) {
  EXPECT_EQ((Call4{{at(0, {1, 6, 9, 7}), at(1, {4, 3, 3, 3}), {}}, {2, 0, 2}}.inferred(kConvolution, 2)),
            "f32 1 4 4 3");
  EXPECT_EQ((Call4{{at(0, {1, 6, 1, 7}), at(1, {4, 3, 9, 3}), {}}, {2, 0, 2}}.inferred(kConvolution, 2)),
            "conv2d: size P of y would be -3 = (H + 2*padding - R)/stride + 1");
  EXPECT_EQ((Call4{{at(0, {5, 13}), {}, {}}, {64}}.inferred(kQuantize, 1)), "f32 2");
  EXPECT_EQ((Call4{{at(0, {5, 13}), {}, {}}, {64}}.inferred(kQuantize, 2)), "i32 5 13");
  EXPECT_EQ((Call4{{at(0, {3, 0}), {}, {}}, {64}}.inferred(kQuantize, 1)), "f32 0");
}

}  // namespace
}  // namespace rooftile
