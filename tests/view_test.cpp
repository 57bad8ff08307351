#include "rooftile/core/view.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <vector>

namespace rooftile {
namespace {

std::vector<std::int64_t> shape_of(const ConstView& v) { return {v.shape, v.shape + v.rank}; }
std::vector<std::int64_t> strides_of(const ConstView& v) { return {v.stride, v.stride + v.rank}; }
using Numbers = std::vector<std::int64_t>;

TEST(View, DenseStridesAreRowMajor) {
  float x[1];
  const View v = view(x, {2, 3, 4});
  EXPECT_EQ(v.rank, 3);
  EXPECT_EQ(v.data, x);
  EXPECT_EQ(v.mutable_data(), x);
  EXPECT_EQ(v.dtype, DType::f32);
  EXPECT_EQ(shape_of(v), (Numbers{2, 3, 4}));
  EXPECT_EQ(strides_of(v), (Numbers{12, 4, 1}));
  EXPECT_EQ(v.size(), 24);
  EXPECT_TRUE(v.present());
}

TEST(View, HoldsEightDimensions) {
  double x[1];
  const View v = view(x, {2, 1, 3, 1, 2, 5, 1, 7});
  EXPECT_EQ(v.rank, kMaxRank);
  EXPECT_EQ(shape_of(v), (Numbers{2, 1, 3, 1, 2, 5, 1, 7}));
  EXPECT_EQ(strides_of(v), (Numbers{210, 210, 70, 70, 35, 7, 7, 1}));
  EXPECT_EQ(v.size(), 420);
}

TEST(View, TakesAnyMixOfIntegers) {
  float x[1];
  const int rows = 5;
  const std::size_t columns = std::size_t{1} << 33;
  const std::uint8_t planes = 200;
  const short step = -3;
  const View v = view(x, {rows, columns, planes}, {step, 0u, std::ptrdiff_t{-1}});
  EXPECT_EQ(shape_of(v), (Numbers{5, std::int64_t{1} << 33, 200}));
  EXPECT_EQ(strides_of(v), (Numbers{-3, 0, -1}));
}

TEST(View, OfConstIsReadOnly) {
  const float read[1] = {};
  float written[1];
  static_assert(std::is_same_v<decltype(view(read, {1})), ConstView>);
  static_assert(std::is_same_v<decltype(view(written, {1})), View>);
  static_assert(std::is_same_v<decltype(view(read, {1}, {1})), ConstView>);
  static_assert(std::is_same_v<decltype(scalar_view(read)), ConstView>);
  static_assert(std::is_same_v<decltype(scalar_view(written)), View>);
  static_assert(std::is_convertible_v<View, ConstView> && !std::is_convertible_v<ConstView, View>);
  EXPECT_EQ(view(read, {1}).data, read);
}

TEST(View, ScalarHasRankZero) {
  std::int32_t x = 0;
  const View v = scalar_view(&x);
  EXPECT_EQ(v.rank, 0);
  EXPECT_EQ(v.size(), 1);
  EXPECT_EQ(v.dtype, DType::i32);
  EXPECT_TRUE(v.present());
}

TEST(View, DefaultIsAbsent) {
  EXPECT_FALSE(ConstView{}.present());
  EXPECT_FALSE(View{}.present());
}

TEST(View, EmptyKeepsTheStridesOfOneElement) {
  float x[1];
  const View v = view(x, {2, 0, 3});
  EXPECT_EQ(v.size(), 0);
  EXPECT_EQ(strides_of(v), (Numbers{3, 3, 1}));
}

TEST(View, ProductsThatDoNotFitWrap) {  // without undefined behaviour: the sanitizers watch
  float x[1];
  const std::int64_t huge = std::int64_t{1} << 40;
  EXPECT_EQ(strides_of(view(x, {huge, huge, huge})), (Numbers{0, huge, 1}));
  EXPECT_EQ(shape_of(view(x, {-1, INT64_MIN, INT64_MAX})), (Numbers{-1, INT64_MIN, INT64_MAX}));
}

TEST(View, KnowsEachElementType) {
  const auto is = [](auto element, DType type, int bits_of, const char* name_of) {
    using T = decltype(element);
    const T* none = nullptr;
    EXPECT_EQ(view(none, {1}).dtype, type);
    EXPECT_EQ(bits(type), bits_of) << name_of;
    EXPECT_STREQ(name(type), name_of);
    EXPECT_EQ(sizeof(T) * 8, static_cast<std::size_t>(type == DType::u4 ? 8 : bits_of)) << name_of;
  };
  is(double{}, DType::f64, 64, "f64");
  is(float{}, DType::f32, 32, "f32");
  is(tf32{}, DType::tf32, 32, "tf32");
  is(f16{}, DType::f16, 16, "f16");
  is(bf16{}, DType::bf16, 16, "bf16");
  is(f8e4m3{}, DType::f8e4m3, 8, "f8e4m3");
  is(f8e5m2{}, DType::f8e5m2, 8, "f8e5m2");
  is(std::int64_t{}, DType::i64, 64, "i64");
  is(std::int32_t{}, DType::i32, 32, "i32");
  is(std::int8_t{}, DType::i8, 8, "i8");
  is(std::uint8_t{}, DType::u8, 8, "u8");
  is(bool{}, DType::boolean, 8, "bool");
  is(u4x2{}, DType::u4, 4, "u4");
  EXPECT_EQ(bytes_of(DType::u4, 7), 4);
  EXPECT_EQ(bytes_of(DType::u4, 8), 4);
  EXPECT_EQ(bytes_of(DType::f32, 3), 12);
  EXPECT_TRUE(is_floating(DType::f8e5m2));
  EXPECT_FALSE(is_floating(DType::i64));
}

}  // namespace
}  // namespace rooftile
