#include "rooftile/core/check.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <climits>
#include <cstdint>
#include <cstdio>
#include <set>
#include <string>
#include <vector>

#include "tests/random_views.h"

namespace rooftile {
namespace {

constexpr auto kAll = {DType::f64,    DType::f32,     DType::tf32, DType::f16, DType::bf16,
                       DType::f8e4m3, DType::f8e5m2,  DType::i64,  DType::i32, DType::i8,
                       DType::u8,     DType::boolean, DType::u4};
constexpr std::int64_t operator""_th(unsigned long long power) {
  return std::int64_t{1} << power;
}  // 40_th is 2^40

alignas(64) float floats[64];

std::string checked(const ConstView& x, std::initializer_list<DType> allowed = kAll) {
  return check_view("op", {"x", x}, allowed).message();
}
std::string told(const ConstView& v) { return describe(v).text; }

TEST(CheckArguments, DescribesAView) {
  EXPECT_EQ(told(view(floats, {2, 3})), "2x3 f32");
  EXPECT_EQ(told(view(reinterpret_cast<const f16*>(floats), {64, 1024}, {2048, 1})),
            "64x1024 f16 (strides 2048, 1)");
  EXPECT_EQ(told(view(floats, {1, 4}, {99, 1})), "1x4 f32");  // one row has no stride
  EXPECT_EQ(told(view(floats, {2, 0, 3})), "2x0x3 f32");
  EXPECT_EQ(told(scalar_view(floats)), "scalar f32");
  EXPECT_EQ(told(ConstView{}), "absent");
  // The longest: cut, not overrun.
  const std::int64_t most = INT64_MAX;
  const std::string longest = told(view(floats, {most, most, most, most, most, most, most, most},
                                        {most, most, most, most, most, most, most, most}));
  EXPECT_EQ(longest.size(), sizeof(Description::text) - 1);
  EXPECT_EQ(longest.substr(0, 20), "9223372036854775807x");
  EXPECT_EQ(longest.substr(longest.size() - 3), "…");
  (void)told(view(floats, {40_th, 40_th, 40_th}));  // products wrap; the sanitizers watch
}

TEST(CheckArguments, AcceptsWhatIsRight) {
  EXPECT_EQ(checked(view(floats, {2, 3})), "");
  EXPECT_EQ(checked(view(floats, {2, 3}, {-3, 0})), "");
  EXPECT_EQ(checked(scalar_view(floats)), "");
  EXPECT_EQ(checked(view(static_cast<float*>(nullptr), {4, 0})), "");
  EXPECT_EQ(checked(view(floats, {1, 8}, {INT64_MIN, 1})), "");  // nothing is that far away
}

TEST(CheckArguments, RefusesAnAbsentView) { EXPECT_EQ(checked(ConstView{}), "op: x is absent"); }

TEST(CheckArguments, RefusesADType) {
  EXPECT_EQ(checked(view(reinterpret_cast<std::int8_t*>(floats), {2, 3}), {DType::f32, DType::bf16}),
            "op: x is 2x3 i8, must be one of f32, bf16");
  // All thirteen names fit.
  EXPECT_EQ(
      checked(view(floats, {2}),
              {DType::f64, DType::tf32, DType::f16, DType::bf16, DType::f8e4m3, DType::f8e5m2, DType::i64,
               DType::i32, DType::i8, DType::u8, DType::boolean, DType::u4}),
      "op: x is 2 f32, must be one of f64, tf32, f16, bf16, f8e4m3, f8e5m2, i64, i32, i8, u8, bool, u4");
}

TEST(CheckArguments, RefusesMoreThanEightDimensions) {
  ConstView nine = view(floats, {1});
  nine.rank = 9;
  EXPECT_EQ(checked(nine), "op: x has 9 dimensions, at most 8 are possible");
}

TEST(CheckArguments, RefusesANegativeSize) {
  EXPECT_EQ(checked(view(floats, {2, -3})), "op: x has size -3 in dimension 1, must not be negative");
  EXPECT_EQ(checked(view(floats, {0, INT64_MIN})),
            "op: x has size -9223372036854775808 in dimension 1, must not be negative");
}

TEST(CheckArguments, RefusesNullData) {
  EXPECT_EQ(checked(view(static_cast<float*>(nullptr), {2, 3})), "op: x is 2x3 f32, but its data is null");
}

TEST(CheckArguments, RefusesMisalignedData) {
  char* bytes = reinterpret_cast<char*>(floats);
  const auto aligned = [&](auto element, int offset) {
    using T = decltype(element);
    return checked(view(reinterpret_cast<T*>(bytes + offset), {3})) == "";
  };
  for (int offset = 0; offset < 16; ++offset) {
    EXPECT_EQ(aligned(double{}, offset), offset % 8 == 0) << offset;
    EXPECT_EQ(aligned(float{}, offset), offset % 4 == 0) << offset;
    EXPECT_EQ(aligned(bf16{}, offset), offset % 2 == 0) << offset;
    EXPECT_TRUE(aligned(std::uint8_t{}, offset));
    EXPECT_TRUE(aligned(u4x2{}, offset));
  }
  const std::string text = checked(view(reinterpret_cast<float*>(bytes + 2), {3}));
  char expected[128];
  std::snprintf(expected, sizeof expected,
                "op: x is at address %p, which is not a multiple of the 4 bytes of f32",
                static_cast<void*>(bytes + 2));
  EXPECT_EQ(text, expected);
}

TEST(CheckArguments, RefusesWhatReachesTooFar) {
  const auto too_far = [](const ConstView& v) {
    const std::string text = checked(v);
    EXPECT_TRUE(text.empty() || text.find("reaches beyond 2^62 elements or bits") != text.npos) << text;
    return !text.empty();
  };
  std::uint8_t* bytes = reinterpret_cast<std::uint8_t*>(floats);
  // The last element ends at bit 2^62, or behind it.
  EXPECT_FALSE(too_far(view(floats, {57_th})));
  EXPECT_TRUE(too_far(view(floats, {57_th + 1})));
  EXPECT_FALSE(too_far(view(floats, {2}, {57_th - 1})));
  EXPECT_TRUE(too_far(view(floats, {2}, {57_th})));
  EXPECT_FALSE(too_far(view(floats, {2}, {1 - 57_th})));
  EXPECT_TRUE(too_far(view(floats, {2}, {-57_th})));
  EXPECT_FALSE(too_far(view(bytes, {59_th})));
  EXPECT_TRUE(too_far(view(bytes, {59_th + 1})));
  // Several dimensions together.
  EXPECT_FALSE(too_far(view(bytes, {2, 2}, {58_th, 58_th - 1})));
  EXPECT_TRUE(too_far(view(bytes, {2, 2}, {58_th, 58_th})));
  EXPECT_TRUE(too_far(view(bytes, {2, 2}, {59_th - 1, 59_th - 1})));
  EXPECT_TRUE(too_far(view(bytes, {2, 2, 2}, {59_th - 1, -(59_th - 1), 59_th - 1})));
  // Elements alone, without a stride.
  EXPECT_FALSE(too_far(view(bytes, {31_th, 31_th}, {0, 0})));
  EXPECT_TRUE(too_far(view(bytes, {31_th, 31_th + 1}, {0, 0})));
  EXPECT_TRUE(too_far(view(bytes, {40_th, 40_th, 40_th}, {0, 0, 0})));
  EXPECT_TRUE(too_far(view(bytes, {62_th, 62_th})));
  for (const std::int64_t far : {INT64_MAX, INT64_MIN, INT64_MIN + 1, 62_th, -62_th})
    EXPECT_TRUE(too_far(view(bytes, {2}, {far}))) << far;
  // An empty view's rows are counted, too.
  EXPECT_TRUE(too_far(view(bytes, {40_th, 40_th, 0})));
  EXPECT_TRUE(too_far(view(bytes, {2, 0}, {INT64_MAX, 1})));
}

TEST(CheckArguments, MeasuresAWorkspace) {
  EXPECT_TRUE(check_workspace("op", {}, 0));
  EXPECT_TRUE(check_workspace("op", {floats, 256}, 256));
  EXPECT_STREQ(check_workspace("op", {floats, 255}, 256).message(),
               "op: needs a workspace of 256 bytes (ask op_workspace), was given 255");
  EXPECT_STREQ(check_workspace("op", {nullptr, 4096}, 256).message(),
               "op: needs a workspace of 256 bytes (ask op_workspace), was given 0");
  const std::string text = check_workspace("op", {floats + 8, 200}, 100).message();
  EXPECT_NE(text.find("is not aligned to 64 bytes"), text.npos) << text;
}

TEST(CheckArguments, AWorkspaceLiesApartFromAllArguments) {
  alignas(64) static float memory[128];
  const auto refusal = [](const ConstView& x, std::size_t bytes) -> std::string {
    return check_workspace_apart("op", {memory + 32, bytes}, {"x", x}).message();
  };
  EXPECT_EQ(refusal(view(memory, {32}), 256), "");
  EXPECT_EQ(refusal(view(memory + 96, {32}), 256), "");
  EXPECT_EQ(refusal(view(memory, {2, 16}, {96, 1}), 256), "");  // on both sides
  for (const View& x : {view(memory, {33}), view(memory + 95, {32}), view(memory + 40, {1}),
                        view(memory, {2, 16}, {80, 1}), view(memory + 127, {128}, {-1})}) {
    const std::string text = refusal(x, 256);
    EXPECT_EQ(text.find("op: the workspace (256 bytes at 0x"), 0u) << text;
    EXPECT_NE(text.find(std::string("overlaps x (") + describe(x).text), text.npos) << text;
    EXPECT_NE(text.find("it must lie apart from all arguments"), text.npos) << text;
  }
  // All that was given counts, however much that is.
  EXPECT_EQ(refusal(view(memory + 48, {16}), 64), "");
  EXPECT_NE(refusal(view(memory + 48, {16}), 128), "");
  EXPECT_NE(refusal(view(memory + 48, {16}), SIZE_MAX), "");
}

TEST(CheckArguments, RefusesAnOutputThatOverlapsItself) {
  EXPECT_TRUE(check_output("op", {"y", view(floats, {3, 4})}));
  EXPECT_STREQ(check_output("op", {"y", view(floats, {3, 4}, {0, 1})}).message(),
               "op: output y is 3x4 f32 (strides 0, 1): its strides place several elements at one address");
  EXPECT_TRUE(check_output("op", {"y", view(floats, {3, 2}, {2, 3})}));  // 0 2 4 and 3 5 7
  EXPECT_FALSE(check_output("op", {"y", view(floats, {4, 2}, {2, 6})}));
  EXPECT_TRUE(check_output("op", {"y", view(floats, {0, 4}, {0, 0})}));
  EXPECT_TRUE(check_output("op", {"y", view(floats, {1, 4}, {INT64_MIN, 1})}));
  RandomViews random(3);
  int refused = 0, tangled = 0;
  for (int trial = 0; trial < 40000; ++trial) {
    const View y = random.view_of(random.shape(static_cast<int>(random.number(0, 8))));
    std::vector<std::int64_t> offsets = offsets_of(y);
    std::sort(offsets.begin(), offsets.end());
    const bool twice = std::adjacent_find(offsets.begin(), offsets.end()) != offsets.end();
    ASSERT_EQ(check_output("op", {"y", y}).ok(), !twice) << told(y);
    refused += twice;
    tangled += !twice && y.rank > 2;
  }
  EXPECT_GT(refused, 1000);
  EXPECT_GT(tangled, 1000);
}

/// The bits of memory that a view's elements take.
std::set<std::int64_t> bits_of(const ConstView& v) {
  std::set<std::int64_t> all;
  const std::int64_t base = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(v.data)) * 8;
  const int step = v.dtype == DType::u4 ? 4 : 8;  // whole half bytes or bytes
  for (const std::int64_t at : offsets_of(v))
    for (int b = 0; b < bits(v.dtype); b += step) all.insert((base + at * bits(v.dtype) + b) / 4);
  if (step == 8) {
    std::set<std::int64_t> both = all;
    for (const std::int64_t half : all) both.insert(half + 1);
    return both;
  }
  return all;
}

TEST(CheckArguments, FindsOverlapExactly) {
  RandomViews random(4);
  const std::vector<DType> types = {DType::u4, DType::u8, DType::f16, DType::f32};
  int shared = 0, interleaved = 0;
  for (int trial = 0; trial < 30000; ++trial) {
    View views[2];
    for (View& v : views) {
      v = random.view_of(random.shape(static_cast<int>(random.number(0, trial % 50 == 0 ? 8 : 4))));
      v.dtype = random.one_of(types);
      v.data = reinterpret_cast<void*>(static_cast<std::uintptr_t>(100000 + random.number(-20, 20)));
    }
    const std::set<std::int64_t> a = bits_of(views[0]), b = bits_of(views[1]);
    const bool meet = std::any_of(a.begin(), a.end(), [&](std::int64_t bit) { return b.count(bit) != 0; });
    const auto text = [&] {
      return told(views[0]) + " at " + std::to_string(reinterpret_cast<std::uintptr_t>(views[0].data)) +
             " and " + told(views[1]) + " at " +
             std::to_string(reinterpret_cast<std::uintptr_t>(views[1].data));
    };
    ASSERT_EQ(overlap(views[0], views[1]), meet) << text();
    ASSERT_EQ(overlap(views[1], views[0]), meet) << text();
    const Range ra = range_of(views[0]);
    ASSERT_EQ(ra.begin == ra.end, a.empty());
    if (!a.empty()) {
      ASSERT_EQ(ra.begin, static_cast<std::uintptr_t>(*a.begin() / 2)) << text();
      ASSERT_EQ(ra.end, static_cast<std::uintptr_t>(*a.rbegin() / 2 + 1)) << text();
    }
    shared += meet;
    interleaved += !meet && !a.empty() && !b.empty() && *a.begin() < *b.rbegin() && *b.begin() < *a.rbegin();
  }
  EXPECT_GT(shared, 3000);
  EXPECT_GT(interleaved, 1000);
}

TEST(CheckArguments, AllowsInPlaceAndInterleavedOutputs) {
  const auto refusal = [](const View& y, const ConstView& x, bool in_place) -> std::string {
    return check_no_overlap("op", {"y", y}, {"x", x}, in_place).message();
  };
  const View x = view(floats, {2, 4});
  EXPECT_EQ(refusal(x, x, true), "");
  EXPECT_NE(refusal(x, x, false), "");
  EXPECT_NE(refusal(view(floats + 1, {2, 4}), x, true), "");
  EXPECT_NE(refusal(view(floats, {2, 4}, {1, 2}), x, true), "");
  EXPECT_NE(refusal(view(reinterpret_cast<std::int32_t*>(floats), {2, 4}), x, true), "");
  EXPECT_EQ(refusal(view(floats, {1, 4}, {7, 1}), view(floats, {1, 4}), true), "");  // one row has no stride
  EXPECT_EQ(refusal(view(floats + 8, {2, 4}), x, false), "");
  // Even and odd columns of one array.
  EXPECT_EQ(refusal(view(floats + 1, {4, 4}, {8, 2}), view(floats, {4, 4}, {8, 2}), false), "");
  EXPECT_NE(refusal(view(floats + 2, {4, 4}, {8, 2}), view(floats, {4, 4}, {8, 2}), false), "");
  EXPECT_EQ(refusal(x, ConstView{}, false), "");
  const std::string text = refusal(view(floats + 1, {2, 4}), x, true);
  EXPECT_NE(text.find("op: output y (2x4 f32 at 0x"), text.npos) << text;
  EXPECT_NE(text.find("overlaps x (2x4 f32 at 0x"), text.npos) << text;
  EXPECT_NE(text.find("it may be the same view or apart from it"), text.npos) << text;
}

TEST(CheckArguments, OverlapOfTheFarthestViewsTerminates) {
  // Strides without a common divisor in every dimension, and reaches of 2^62 bits: no overflow, no endless
  // search.
  View a = view(floats, {3, 3, 3, 3, 3, 3, 3, 3},
                {1000003, 1000033, 1000037, 1000039, 1000081, 1000099, 1000117, 1000121});
  View b = a;
  b.data = floats + 1;
  for (int d = 0; d < 8; ++d) b.stride[d] += 2 * d + 1;
  (void)overlap(a, b);
  const View c = view(floats, {2}, {57_th - 1}), d = view(floats + 1, {2}, {57_th - 1});
  EXPECT_FALSE(overlap(c, d));
  EXPECT_TRUE(overlap(c, c));
  EXPECT_FALSE(overlap(view(floats, {1, 4}, {INT64_MIN, 1}), view(floats + 4, {1, 4}, {INT64_MAX, 1})));
}

}  // namespace
}  // namespace rooftile
