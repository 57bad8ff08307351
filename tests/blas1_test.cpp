// What the cases of rooftile/ops/blas1 cannot say: every dtype of copy bit by bit, packed elements, the shape
// of the reductions' tree, sums beyond f32's reach, norms at both ends of the range, and the sentences.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <numeric>
#include <random>
#include <vector>

#include "rooftile/core/convert.h"
#include "rooftile/ops/blas1/blas1.h"

namespace rooftile {
namespace {

constexpr std::int64_t kNever = std::int64_t{1} << 62;

/// A queue whose calls always stream, or never.
Queue queue_of(int threads, bool streaming) {
  CpuOptions options;
  options.threads = threads;
  options.streaming_bytes = streaming ? 0 : kNever;
  return Queue::cpu(options);
}

std::vector<std::uint8_t> random_bytes(std::size_t count) {
  std::mt19937 random(1);
  std::vector<std::uint8_t> bytes(count);
  for (auto& b : bytes) b = static_cast<std::uint8_t>(random());
  return bytes;
}

View view_of(void* data, DType type, std::vector<std::int64_t> shape, std::vector<std::int64_t> stride) {
  View v;
  v.data = data;
  v.dtype = type;
  v.rank = static_cast<int>(shape.size());
  std::copy(shape.begin(), shape.end(), v.shape);
  std::copy(stride.begin(), stride.end(), v.stride);
  return v;
}

constexpr DType kWhole[] = {DType::f64,    DType::f32, DType::tf32, DType::f16, DType::bf16, DType::f8e4m3,
                            DType::f8e5m2, DType::i64, DType::i32,  DType::i8,  DType::u8,   DType::boolean};

TEST(Copy, MovesEveryBitAndNothingBeside) {
  const auto source = random_bytes(20000);
  for (bool streaming : {false, true}) {
    const Queue queue = queue_of(2, streaming);
    for (DType type : kWhole) {
      const int width = bits(type) / 8;
      for (std::int64_t n : {0, 1, 2, 3, 7, 63, 64, 65, 255, 513, 1500})
        for (int from : {0, 1, 5})
          for (int to : {0, 1, 3, 8}) {
            std::vector<std::uint8_t> target(20000, 0xA5), expected = target;
            std::memcpy(expected.data() + to * width, source.data() + from * width,
                        static_cast<std::size_t>(n * width));
            auto* x = const_cast<std::uint8_t*>(source.data()) + from * width;
            const Status s =
                copy(queue, view_of(x, type, {n}, {1}), view_of(target.data() + to * width, type, {n}, {1}));
            ASSERT_TRUE(s) << s.message();
            ASSERT_EQ(target, expected) << name(type) << " n " << n << " from " << from << " to " << to;
          }
    }
  }
}

TEST(Copy, MovesEveryBitBetweenStrides) {
  constexpr std::int64_t A = 3, B = 70, C = 131;
  const auto source = random_bytes(A * B * C * 8);
  const Queue queue = queue_of(2, false);
  for (DType type : kWhole) {
    const auto width = static_cast<std::size_t>(bits(type) / 8);
    std::vector<std::uint8_t> target(A * B * C * 8);
    // x[a][b][c] lies at c·B·A + b·A + a; y[a][b][c] at a·B·C + b·C + (C - 1 - c).
    const auto x = view_of(const_cast<std::uint8_t*>(source.data()), type, {A, B, C}, {1, A, A * B});
    const auto y = view_of(target.data() + (C - 1) * width, type, {A, B, C}, {B * C, C, -1});
    ASSERT_TRUE(copy(queue, x, y));
    for (std::size_t a = 0; a < A; ++a)
      for (std::size_t b = 0; b < B; ++b)
        for (std::size_t c = 0; c < C; ++c)
          ASSERT_EQ(std::memcmp(target.data() + ((a * B + b) * C + C - 1 - c) * width,
                                source.data() + ((c * B + b) * A + a) * width, width),
                    0)
              << name(type) << " " << a << " " << b << " " << c;
  }
}

TEST(Copy, PackedKeepsTheOtherHalfOfTheLastByte) {
  const auto source = random_bytes(100);
  const Queue queue = queue_of(1, false);
  for (std::int64_t n : {0, 1, 2, 3, 127, 128, 129}) {
    std::vector<std::uint8_t> target(100, 0xA5), expected = target;
    std::copy_n(source.begin(), n / 2, expected.begin());
    if (n % 2 == 1)
      expected[static_cast<std::size_t>(n / 2)] = (source[static_cast<std::size_t>(n / 2)] & 0xf0) | 0x05;
    ASSERT_TRUE(copy(queue, view_of(const_cast<std::uint8_t*>(source.data()), DType::u4, {n}, {1}),
                     view_of(target.data(), DType::u4, {n}, {1})));
    EXPECT_EQ(target, expected) << n;
  }
  std::uint8_t bytes[16] = {};
  const Status s = copy(queue, view_of(bytes, DType::u4, {4}, {2}), view_of(bytes + 8, DType::u4, {4}, {1}));
  EXPECT_STREQ(s.message(),
               "copy: x is 4 u4 (strides 2): packed elements must lie side by side in row-major order");
}

TEST(Swap, BothWaysBetweenStridesAndNeverOfOneTensor) {
  const Queue queue = queue_of(2, false);
  std::vector<float> x(600), y(600);
  std::iota(x.begin(), x.end(), 0.f);
  std::iota(y.begin(), y.end(), 1000.f);
  // x[i][j] lies at j·20 + i, y[i][j] at 599 - (i·30 + j).
  ASSERT_TRUE(swap(queue, view(x.data(), {20, 30}, {1, 20}), view(y.data() + 599, {20, 30}, {-30, -1})));
  for (std::size_t i = 0; i < 20; ++i)
    for (std::size_t j = 0; j < 30; ++j) {
      ASSERT_EQ(x[j * 20 + i], 1599 - static_cast<float>(i * 30 + j));
      ASSERT_EQ(y[599 - (i * 30 + j)], static_cast<float>(j * 20 + i));
    }
  EXPECT_NE(
      std::string(swap(queue, view(x.data(), {4}), view(x.data(), {4})).message()).find("must lie apart"),
      std::string::npos);
  EXPECT_FALSE(swap(queue, view(x.data(), {4}), view(x.data() + 3, {4})));
  EXPECT_FALSE(swap(queue, view(x.data(), {4}), view(y.data(), {4}, {0})));
}

TEST(Scal, ZeroMultipliesAsAnyFactor) {
  const Queue queue = queue_of(1, false);
  std::vector<float> x(100, 1);
  x[7] = std::nanf("");
  x[99] = HUGE_VALF;
  ASSERT_TRUE(scal(queue, 0, view(x.data(), {100}), view(x.data(), {100})));
  EXPECT_EQ(x[0], 0);
  EXPECT_TRUE(std::isnan(x[7]) && std::isnan(x[99]));
  // What f32 cannot hold is a factor for f64.
  double d = 3;
  ASSERT_TRUE(scal(queue, 0x1.0000000001p-200, view(&d, {1}), view(&d, {1})));
  EXPECT_EQ(d, 3 * 0x1.0000000001p-200);
}

TEST(Axpby, AFactorOfZeroReadsNothing) {
  const Queue queue = queue_of(2, false);
  const float nan = std::nanf("");
  const std::int64_t n = 1000;
  std::vector<float> nans(n, nan), ones(n, 1), y;
  y = nans;
  ASSERT_TRUE(axpby(queue, 3, view(ones.data(), {n}), 0, view(y.data(), {n})));
  EXPECT_EQ(y, std::vector<float>(n, 3));
  y = ones;
  ASSERT_TRUE(axpby(queue, 0, view(nans.data(), {n}), 5, view(y.data(), {n})));
  EXPECT_EQ(y, std::vector<float>(n, 5));
  y = nans;
  ASSERT_TRUE(axpby(queue, 0, view(nans.data(), {n}), 0, view(y.data(), {n})));
  EXPECT_EQ(y, std::vector<float>(n, 0));
  y = nans;
  ASSERT_TRUE(axpby(queue, 1, view(ones.data(), {n}), 1, view(y.data(), {n})));
  EXPECT_TRUE(std::isnan(y[0]) && std::isnan(y[n - 1]));
}

TEST(Axpby, InPlaceAndBroadcast) {
  const Queue queue = queue_of(1, false);
  std::vector<float> y(1000);
  std::iota(y.begin(), y.end(), 0.f);
  ASSERT_TRUE(axpby(queue, 2, view(y.data(), {1000}), 1, view(y.data(), {1000})));
  EXPECT_EQ(y[999], 2997);
  const float two = 2;
  ASSERT_TRUE(axpby(queue, 0.5, view(&two, {10, 100}, {0, 0}), 1, view(y.data(), {10, 100})));
  EXPECT_EQ(y[0], 1);
  EXPECT_EQ(y[999], 2998);
}

double dot_in_f64(const Queue& queue, ConstView x, ConstView y, const char* variant = nullptr) {
  double result = -1;
  const Status s = dot(queue, x, y, scalar_view(&result), {variant});
  EXPECT_TRUE(s) << s.message();
  return result;
}

TEST(Dot, IsRightWhereOneSumStandsStill) {
  // From 2^24 ones on, 1 is half the last digit of an f32 and rounds away.
  const std::int64_t n = (std::int64_t{1} << 25) + 3;
  const Queue queue = queue_of(2, false);
  const float one = 1;
  const f16 half_one = from_double<f16>(1);
  EXPECT_EQ(dot_in_f64(queue, view(&one, {n}, {0}), view(&one, {n}, {0})), static_cast<double>(n));
  EXPECT_EQ(dot_in_f64(queue, view(&half_one, {n}, {0}), view(&half_one, {n}, {0})), static_cast<double>(n));
}

double pairwise(const std::vector<double>& values, std::size_t first, std::size_t count) {
  if (count == 1) return values[first];
  std::size_t left = 1;
  while (left * 2 < count) left *= 2;
  return pairwise(values, first, left) + pairwise(values, first + left, count - left);
}

TEST(Dot, AddsChunksPairwiseInIndexOrder) {
  // One number in each chunk, of very different sizes: any other order of additions would show.
  constexpr std::int64_t kChunk = 16384;
  std::mt19937 random(7);
  std::normal_distribution<float> normal;
  std::vector<float> x(1030 * kChunk);
  std::vector<double> sums;
  for (std::int64_t c = 0; c < 1030; ++c) {
    const float value = std::ldexp(normal(random), static_cast<int>(random() % 100) - 50);
    sums.push_back(x[static_cast<std::size_t>(c * kChunk + c % kChunk)] = value);
  }
  const float one = 1;
  for (bool streaming : {false, true})
    for (int threads : {1, 2, 3, 7}) {
      const Queue queue = queue_of(threads, streaming);
      for (std::int64_t chunks : {1, 2, 3, 5, 6, 7, 8, 511, 512, 513, 1023, 1024, 1025, 1030})
        ASSERT_EQ(dot_in_f64(queue, view(x.data(), {chunks * kChunk}), view(&one, {chunks * kChunk}, {0})),
                  pairwise(sums, 0, static_cast<std::size_t>(chunks)))
            << chunks << " chunks, " << threads << " threads";
    }
}

template <class T>
void expect_same_bits() {
  constexpr std::int64_t M = 301, N = 257;  // rows end within chunks
  std::mt19937 random(3);
  std::normal_distribution<double> normal;
  std::vector<T> x(M * N + 64), y(M * N + 64);
  const auto make = [&] {
    if constexpr (std::is_floating_point_v<T>)
      return static_cast<T>(normal(random));
    else
      return from_double<T>(normal(random));
  };
  for (auto& v : x) v = make();
  for (auto& v : y) v = make();
  const double expected = dot_in_f64(queue_of(1, false), view(x.data(), {M * N}), view(y.data(), {M * N}));
  for (bool streaming : {false, true})
    for (int threads : {1, 2, 3, 7}) {
      const Queue queue = queue_of(threads, streaming);
      EXPECT_EQ(dot_in_f64(queue, view(x.data(), {M * N}), view(y.data(), {M * N})), expected);
      EXPECT_EQ(dot_in_f64(queue, view(x.data(), {M, N}), view(y.data(), {M, N})), expected);
      // The same numbers, column by column in memory, backwards, and one element off.
      std::vector<T> columns(M * N), backwards(M * N), off(M * N + 1);
      for (std::int64_t i = 0; i < M; ++i)
        for (std::int64_t j = 0; j < N; ++j)
          columns[static_cast<std::size_t>(j * M + i)] = x[static_cast<std::size_t>(i * N + j)];
      std::reverse_copy(y.begin(), y.begin() + M * N, backwards.begin());
      std::copy(y.begin(), y.begin() + M * N, off.begin() + 1);
      EXPECT_EQ(dot_in_f64(queue, view(columns.data(), {M, N}, {1, M}), view(y.data(), {M, N})), expected);
      EXPECT_EQ(dot_in_f64(queue, view(x.data(), {M * N}), view(backwards.data() + M * N - 1, {M * N}, {-1})),
                expected);
      EXPECT_EQ(dot_in_f64(queue, view(x.data(), {M * N}), view(off.data() + 1, {M * N})), expected);
    }
}

TEST(Dot, HasTheSameBitsForAnyThreadsAndStrides) {
  expect_same_bits<float>();
  expect_same_bits<double>();
  expect_same_bits<f16>();
  expect_same_bits<bf16>();
}

using Reduction = Status (*)(const Queue&, ConstView, View);
constexpr Reduction kReductions[] = {
    [](const Queue& queue, ConstView x, View result) { return nrm2(queue, x, result); },
    [](const Queue& queue, ConstView x, View result) { return asum(queue, x, result); },
};

TEST(Reductions, HaveTheSameBitsForAnyThreadsAndStrides) {
  constexpr std::int64_t M = 301, N = 257;
  std::mt19937 random(4);
  std::normal_distribution<double> normal;
  std::vector<double> x(M * N), columns(M * N), off(M * N + 1);
  // Chunks on both sides of what squares can hold.
  for (auto& v : x) v = std::ldexp(normal(random), 505);
  for (std::size_t i = 0; i < M; ++i)
    for (std::size_t j = 0; j < N; ++j) columns[j * M + i] = x[i * N + j];
  std::copy(x.begin(), x.end(), off.begin() + 1);
  for (const Reduction reduce : kReductions) {
    double expected = 0;
    ASSERT_TRUE(reduce(queue_of(1, false), view(x.data(), {M * N}), scalar_view(&expected)));
    for (bool streaming : {false, true})
      for (int threads : {1, 2, 3, 7})
        for (const ConstView& same :
             {ConstView(view(x.data(), {M, N})), ConstView(view(columns.data(), {M, N}, {1, M})),
              ConstView(view(off.data() + 1, {M * N}))}) {
          double result = 0;
          ASSERT_TRUE(reduce(queue_of(threads, streaming), same, scalar_view(&result)));
          EXPECT_EQ(result, expected);
        }
    ASSERT_TRUE(reduce(queue_of(1, false), view(x.data(), {0}), scalar_view(&expected)));
    EXPECT_EQ(expected, 0);
  }
}

TEST(Nrm2, IsExactAtBothEndsOfTheRange) {
  const Queue queue = queue_of(1, false);
  double result = 0;
  for (double unit : {0x1p-1074, 0x1p-1022, 1.0, 0x1p1021}) {
    const double x[] = {3 * unit, 4 * unit};
    ASSERT_TRUE(nrm2(queue, view(x, {2}), scalar_view(&result)));
    EXPECT_EQ(result, 5 * unit);
  }
  // One chunk of the largest numbers, one of the smallest, one that is an infinity's.
  std::vector<double> x(3 * 16384, 0x1p-1074);
  x[0] = 3 * 0x1p1021;
  x[20000] = 4 * 0x1p1021;
  ASSERT_TRUE(nrm2(queue, view(x.data(), {3 * 16384}), scalar_view(&result)));
  EXPECT_EQ(result, 5 * 0x1p1021);
  x[40000] = -HUGE_VAL;
  ASSERT_TRUE(nrm2(queue, view(x.data(), {3 * 16384}), scalar_view(&result)));
  EXPECT_EQ(result, HUGE_VAL);
  x[1] = std::nan("");
  ASSERT_TRUE(nrm2(queue, view(x.data(), {3 * 16384}), scalar_view(&result)));
  EXPECT_TRUE(std::isnan(result));
}

TEST(Dot, TheCompensatedVariantIsTheMoreExact) {
  std::mt19937 random(5);
  std::normal_distribution<float> normal;
  const std::int64_t n = 100000;
  std::vector<float> x(n), y(n);
  double exact = 0;
  for (std::size_t i = 0; i < n; ++i) {
    x[i] = normal(random);
    y[i] = normal(random);
    exact += static_cast<double>(x[i]) * static_cast<double>(y[i]);
  }
  const Queue queue = queue_of(1, false);
  const double plain = dot_in_f64(queue, view(x.data(), {n}), view(y.data(), {n}));
  const double careful = dot_in_f64(queue, view(x.data(), {n}), view(y.data(), {n}), "compensated");
  EXPECT_GT(std::fabs(plain - exact), 1e-7);
  // Without a fused multiply-add the products' own rounding stays.
  const bool fused = std::strcmp(queue.isa(), "baseline") != 0;
  EXPECT_LT(std::fabs(careful - exact), fused ? 1e-9 : 1e-4);
}

TEST(Dot, ResultDtypes) {
  const Queue queue = queue_of(1, false);
  const bf16 x = from_double<bf16>(1.5);
  bf16 half;
  float single;
  double wide;
  const ConstView v = view(&x, {5}, {0});
  ASSERT_TRUE(dot(queue, v, v, scalar_view(&half)));
  ASSERT_TRUE(dot(queue, v, v, scalar_view(&single)));
  ASSERT_TRUE(dot(queue, v, v, view(&wide, {1, 1})));
  EXPECT_EQ(to_float(half), 11.25f);
  EXPECT_EQ(single, 11.25f);
  EXPECT_EQ(wide, 11.25);
  ASSERT_TRUE(dot(queue, view(&x, {0}), view(&x, {0}), scalar_view(&wide)));
  EXPECT_EQ(wide, 0);
}

TEST(Blas1, RefusalsNameWhatTheySaw) {
  const Queue queue = queue_of(1, false);
  float x[8] = {}, y[8] = {};
  double wide = 0;
  f16 half{};
  EXPECT_STREQ(copy(queue, view(x, {4}), view(y, {2, 2})).message(),
               "copy: y is 2x2 f32, must be 4 where x is 4 f32");
  EXPECT_STREQ(add(queue, view(x, {4}), view(x, {4}), view(y, {4}, {0})).message(),
               "add: output z is 4 f32 (strides 0): its strides place several elements at one address");
  EXPECT_STREQ(dot(queue, view(x, {4}), view(y, {4}), view(x + 4, {2})).message(),
               "dot: result is 2 f32, must have one element");
  EXPECT_STREQ(dot(queue, view(x, {4}), view(y, {4}), scalar_view(&half)).message(),
               "dot: result is scalar f16, must be f64, or f32 as x is");
  EXPECT_STREQ(dot(queue, view(&wide, {1}), view(&wide, {1}), scalar_view(x)).message(),
               "dot: result is f32, must be f64 where x is");
  EXPECT_NE(std::string(axpby(queue, 1, view(y + 1, {4}), 1, view(y, {4})).message()).find("overlaps x"),
            std::string::npos);
  EXPECT_NE(std::string(dot(queue, view(x, {4}), view(y, {4}), scalar_view(x + 1)).message())
                .find("must lie apart"),
            std::string::npos);
  EXPECT_NE(
      std::string(add(queue, view(&wide, {1}), view(&wide, {1}), view(&wide, {1}), {"01_scalar"}).message())
          .find("rungs take f32"),
      std::string::npos);
  std::int32_t i = 0;
  EXPECT_STREQ(add(queue, view(&i, {1}), view(&i, {1}), view(&i, {1})).message(),
               "add: x is 1 i32, must be one of f64, f32, f16, bf16");
}

}  // namespace
}  // namespace rooftile
