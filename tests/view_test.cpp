#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>
#include <vector>
#if __has_include(<stdfloat>)
#include <stdfloat>
#endif

#include "rooftile/core/view_of.h"
#include "rooftile/ops/blas1/blas1.h"

/// As CUDA's headers have it: 2 bytes with constructors.
struct alignas(2) __half {
  __half() = default;
  explicit __half(float) {}
  unsigned short bits;
};
struct Mine {
  unsigned char bits;
};
template <>
struct rooftile::DTypeOf<Mine> {
  static constexpr auto value = rooftile::DType::f8e5m2;
};

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

TEST(View, OfAContainer) {
  std::vector<float> x(6);
  const std::vector<float>& read = x;
  std::array<double, 3> fixed{};
  const View all = view(x);
  EXPECT_EQ(all.data, x.data());
  EXPECT_EQ(shape_of(all), Numbers{6});
  EXPECT_EQ(shape_of(view(fixed)), Numbers{3});
  EXPECT_EQ(view(fixed).dtype, DType::f64);
  static_assert(std::is_same_v<decltype(view(x)), View>);
  static_assert(std::is_same_v<decltype(view(read)), ConstView>);
  static_assert(std::is_same_v<decltype(view(std::span(x))), View>);
  static_assert(std::is_same_v<decltype(view(std::span<const float>(x), {2, 3})), ConstView>);
  // Not of what ends with the statement.
  static_assert(detail::Lasting<std::span<float>> && detail::Lasting<std::vector<float>&> &&
                !detail::Lasting<std::vector<float>>);
  EXPECT_EQ(strides_of(view(std::span(x), {2, 3})), (Numbers{3, 1}));
  EXPECT_EQ(shape_of(view(std::span(x).subspan(2), {2, 2})), (Numbers{2, 2}));
  EXPECT_EQ(shape_of(view(x, {0, 100})), (Numbers{0, 100}));
  std::vector<u4x2> packed(3);
  EXPECT_EQ(shape_of(view(packed)), Numbers{6});
  EXPECT_EQ(shape_of(view(packed, {2, 3})), (Numbers{2, 3}));
}

TEST(View, OfARankKnownAtRunTime) {
  float x[24];
  const std::vector<int> sizes = {2, 3, 4};
  const std::array<std::ptrdiff_t, 3> strides = {1, 2, -6};
  EXPECT_EQ(strides_of(view(x, sizes)), (Numbers{12, 4, 1}));
  EXPECT_EQ(strides_of(view(x, std::span(sizes), std::span(strides))), (Numbers{1, 2, -6}));
  EXPECT_EQ(shape_of(view(x, sizes, strides)), (Numbers{2, 3, 4}));
  EXPECT_EQ(view(x, std::span<const std::int64_t>()).rank, 0);
  EXPECT_EQ(view(x, std::vector<long>(8, 1)).rank, 8);
  static_assert(std::is_same_v<decltype(view(static_cast<const float*>(x), sizes)), ConstView>);
}

TEST(View, ThatCouldNotBeMadeIsRefusedByTheFunction) {
  const Queue queue = Queue::cpu({.threads = 1});
  std::vector<float> x(6), y(6);
  const auto refusal = [&](const ConstView& v) -> std::string {
    return copy(queue, v, view(y, {2, 3})).message();
  };
  EXPECT_EQ(refusal(view(x, {2, 3})), "");
  EXPECT_EQ(refusal(view(x, {2, 4})), "copy: x has a shape of 8 elements, its memory holds 6");
  EXPECT_EQ(refusal(view(std::span(x), {INT64_MAX, 2})),
            "copy: x has a shape of 9223372036854775807 elements, its memory holds 6");
  EXPECT_EQ(refusal(view(x.data(), std::vector<int>(9, 1))),
            "copy: x has 9 dimensions, at most 8 are possible");
  EXPECT_EQ(refusal(view(x.data(), std::vector<int>(9, 1), std::vector<int>(9, 1))),
            "copy: x has 9 dimensions, at most 8 are possible");
  EXPECT_EQ(refusal(view(x.data(), std::vector{2, 3}, std::vector{1})),
            "copy: x has 2 sizes and 1 strides, must have as many of both");
  EXPECT_EQ(refusal(view(x, {-2, 3})), "copy: x has size -2 in dimension 0, must not be negative");
}

TEST(View, KnowsTheElementsOfCompilersAndOfCuda) {
  static_assert(dtype_of<__half> == DType::f16 && dtype_of<__nv_bfloat16> == DType::bf16);
  static_assert(dtype_of<__nv_fp8_e4m3> == DType::f8e4m3 && dtype_of<__nv_fp8_e5m2> == DType::f8e5m2);
  static_assert(dtype_of<Mine> == DType::f8e5m2);
  static_assert(!Element<long double> && !Element<unsigned> && !Element<Extent>);
  __half x[2];
  EXPECT_EQ(view(x, {2}).dtype, DType::f16);
#if defined(__FLT16_MANT_DIG__) && !defined(__clang__)
  static_assert(dtype_of<_Float16> == DType::f16);
#endif
#if defined(__STDCPP_FLOAT16_T__)
  static_assert(dtype_of<std::float16_t> == DType::f16 && dtype_of<std::float64_t> == DType::f64);
#endif
#if defined(__STDCPP_BFLOAT16_T__)
  static_assert(dtype_of<std::bfloat16_t> == DType::bf16);
#endif
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
