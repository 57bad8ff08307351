// The block language, as docs/block-language.md tells it: each kernel shown there against a plain loop, and
// the rules of order that the page promises, bit by bit.
#undef ROOFTILE_ASSERTIONS
#define ROOFTILE_ASSERTIONS
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <random>
#include <vector>

#include "rooftile/core/convert.h"
#include "tests/block_language_kernels.h"

namespace rooftile::language {
namespace {

using Team = CpuTeam<float, Access::cached>;
constexpr int kLanesOfFloat = tile::kLanes<float>;
const std::int64_t kSizes[] = {1, 2, 3, kLanesOfFloat - 1, kLanesOfFloat, kLanesOfFloat + 1, 100, 1000};

alignas(64) std::byte scratch[4 * kScratchBytes];

std::vector<float> normal(std::int64_t count, unsigned seed = 1) {
  std::mt19937 random(seed);
  std::normal_distribution<float> distribution;
  std::vector<float> values(static_cast<std::size_t>(count));
  for (float& value : values) value = distribution(random);
  return values;
}

Row<const float> row_of_vector(const std::vector<float>& v) { return {v.data(), std::int64_t(v.size())}; }

TEST(BlockLanguage, ScalesARow) {
  for (std::int64_t size : kSizes) {
    const std::vector<float> x = normal(size);
    std::vector<float> y(x.size() + 1, 7.f);
    scaled(Team(scratch), row_of_vector(x), Row<float>{y.data(), size}, 3.f);
    for (std::size_t i = 0; i < x.size(); ++i) EXPECT_EQ(y[i], 3 * x[i]) << size << " " << i;
    EXPECT_EQ(y.back(), 7.f) << "the tail wrote past the row of " << size;
  }
}

TEST(BlockLanguage, SoftmaxOfARow) {
  for (std::int64_t size : kSizes) {
    const std::vector<float> x = normal(size);
    std::vector<float> y(x.size());
    softmax(Team(scratch), row_of_vector(x), Row<float>{y.data(), size});
    double sum = 0;
    for (float v : x) sum += std::exp(double(v));
    for (std::size_t i = 0; i < x.size(); ++i)
      EXPECT_NEAR(y[i], std::exp(double(x[i])) / sum, 1e-6 * std::exp(double(x[i])) / sum)
          << size << " " << i;
  }
}

// Without `only`, a row of 1 with mean 1000 would get 15 · 1000² from the empty lanes.
TEST(BlockLanguage, EmptyLanesStayOutOfTheVariance) {
  for (std::int64_t size : kSizes) {
    std::vector<float> x = normal(size);
    for (float& v : x) v += 1000;
    double mean = 0, squares = 0;
    for (float v : x) mean += v;
    mean /= double(size);
    for (float v : x) squares += (v - mean) * (v - mean);
    EXPECT_NEAR(variance(Team(scratch), row_of_vector(x)), squares / double(size), 1e-4) << size;
  }
}

TEST(BlockLanguage, IotaCountsElementsOfTheRow) {
  for (std::int64_t size : kSizes) {
    const std::vector<float> x = normal(size);
    std::vector<float> y(x.size());
    const std::int32_t last = static_cast<std::int32_t>(size / 2);
    causal(Team(scratch), row_of_vector(x), Row<float>{y.data(), size}, last);
    for (std::int64_t i = 0; i < size; ++i)
      EXPECT_EQ(y[std::size_t(i)], i > last ? -kInfinity : x[std::size_t(i)]) << size << " " << i;
  }
}

// 2^24 + 1 - 2^24 is lost in f32.
TEST(BlockLanguage, DoubleTilesTakeFloats) {
  std::vector<float> x = {0x1p24f, 1, -0x1p24f};
  const std::vector<float> ones(x.size(), 1.f);
  const CpuTeam<double, Access::cached> team(scratch);
  EXPECT_EQ(dot(team, row_of_vector(x), row_of_vector(ones)), 1.0);
  const std::vector<double> y = {1, 2, 3, 4, 5}, z = {5, 4, 3, 2, 1};
  EXPECT_EQ(dot(team, Row<const double>{y.data(), 5}, Row<const double>{z.data(), 5}), 35.0);
}

TEST(BlockLanguage, GrayOfEveryPixel) {
  for (std::int64_t size : kSizes) {
    std::vector<std::uint8_t> rgb(std::size_t(3 * size)), y(std::size_t(size) + 1, 99);
    std::mt19937 random(3);
    for (std::uint8_t& v : rgb) v = std::uint8_t(random());
    gray(Team(scratch), Row<const std::uint8_t>{rgb.data(), size, 3}, Row<std::uint8_t>{y.data(), size});
    for (std::size_t i = 0; i < std::size_t(size); ++i)
      EXPECT_EQ(y[i], (77 * rgb[3 * i] + 150 * rgb[3 * i + 1] + 29 * rgb[3 * i + 2] + 128) / 256)
          << size << " " << i;
    EXPECT_EQ(y.back(), 99);
  }
}

TEST(BlockLanguage, AColumnProgramCarriesItsSum) {
  for (std::int64_t columns : kSizes) {
    const std::int64_t rows = 9, window = 4;
    std::vector<float> x(std::size_t(rows * columns));
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = float(i * i % 64);  // sums of whole numbers are exact
    std::vector<float> y(std::size_t((rows - window + 1) * columns));
    column_means(Team(scratch), x.data(), y.data(), rows, columns, window);
    for (std::int64_t row = 0; row + window <= rows; ++row)
      for (std::int64_t c = 0; c < columns; ++c) {
        float sum = 0;
        for (std::int64_t k = 0; k < window; ++k) sum += x[std::size_t((row + k) * columns + c)];
        EXPECT_EQ(y[std::size_t(row * columns + c)], sum / 4) << columns << " " << row << " " << c;
      }
  }
}

// The order of a column's sum is that of the rows, whatever lay in the workspace before.
TEST(BlockLanguage, ColumnAccumulatorsAddRowsInOrder) {
  for (std::int64_t columns : kSizes) {
    const std::int64_t rows = 5;
    const std::vector<float> x = normal(rows * columns), dy = normal(rows * columns, 2);
    std::vector<float> sums(std::size_t(columns), std::nanf(""));
    const auto row_of = [&](const std::vector<float>& matrix) {
      return [&matrix, columns](std::int64_t row) {
        return Row<const float>{matrix.data() + row * columns, columns};
      };
    };
    weight_gradient(Team(scratch), 0, rows, row_of(x), row_of(dy), Row<float>{sums.data(), columns});
    for (std::size_t c = 0; c < std::size_t(columns); ++c) {
      float expected = dy[c] * x[c];
      for (std::size_t row = 1; row < std::size_t(rows); ++row) {
        const float product = dy[row * std::size_t(columns) + c] * x[row * std::size_t(columns) + c];
        expected = expected + product;
      }
      EXPECT_EQ(sums[c], expected) << columns << " " << c;
    }
  }
}

// [tree]
/// What `sums += chunk`, then team.sum(sums) adds, in plain scalars: lane by lane along the row, then by one
/// tree.
float sum_by_the_rules(const std::vector<float>& x) {
  constexpr std::size_t kLane = tile::kLanes<float>, kWide = tile::kVecLanes<float>;
  float lane[kLane] = {};
  for (std::size_t i = 0; i < x.size(); ++i)
    lane[i % kLane] += x[i];  // element → lane: the index alone decides
  float wide[kWide];
  for (std::size_t k = 0; k < kWide; ++k)
    wide[k] = (lane[k] + lane[kWide + k]) + (lane[2 * kWide + k] + lane[3 * kWide + k]);
  for (std::size_t half = kWide / 2; half > 0; half /= 2)
    for (std::size_t k = 0; k < half; ++k) wide[k] += wide[k + half];
  return wide[0];
}
// [/tree]

TEST(BlockLanguage, SumsFollowTheRules) {
  for (std::int64_t size : kSizes) {
    const std::vector<float> x = normal(size);
    Team team(scratch);
    Team::Tile sums = team.fill(0);
    team.each(size, [&](auto chunk) { sums += team.load(row_of_vector(x), chunk); });
    EXPECT_EQ(team.sum(sums), sum_by_the_rules(x)) << size;
  }
}

TEST(BlockLanguage, ExpKeepsSpecialValues) {
  Team team(scratch);
  const auto exp_of = [&](float x) { return team.max(exp(team.fill(x))); };
  EXPECT_EQ(exp_of(-kInfinity), 0.f);
  EXPECT_EQ(exp_of(kInfinity), kInfinity);
  EXPECT_EQ(exp_of(0.f), 1.f);
  EXPECT_EQ(exp_of(-104.f), 0.f);
  EXPECT_TRUE(std::isnan(exp_of(std::nanf(""))));
  EXPECT_NEAR(exp_of(-100.f) / 0x1p-149f, std::exp(-100.) / 0x1p-149, 0.51);  // subnormal
}

// In max, a NaN that comes second wins, and one that comes first is lost: kernels must not count on either.
TEST(BlockLanguage, MaxGivesTheSecondWhereOneIsNaN) {
  Team team(scratch);
  EXPECT_TRUE(std::isnan(team.sum(max(team.fill(1), team.fill(std::nanf(""))))));
  EXPECT_EQ(team.max(max(team.fill(std::nanf("")), team.fill(1))), 1.f);
}

/// Runs tasks one after another, as if there were `threads` of them.
CpuLaunch serial_launch(int threads, std::int64_t streaming_bytes) {
  return {threads, streaming_bytes, scratch, nullptr,
          [](void*, int tasks, void (*task)(void*, int), void* context) {
            for (int i = 0; i < tasks; ++i) task(context, i);
          }};
}

/// The bits of softmax over rows laid out as told, in 1 to 4 threads, through the caches or past them.
std::vector<std::uint32_t> softmax_bits(const std::vector<float>& values, std::int64_t rows,
                                        std::int64_t offset, std::int64_t stride, int threads,
                                        std::int64_t streaming_bytes) {
  const std::int64_t columns = std::int64_t(values.size()) / rows;
  std::vector<float> x(std::size_t(offset + rows * columns * stride)), y(x.size());
  for (std::int64_t i = 0; i < rows * columns; ++i)
    x[std::size_t(offset + i * stride)] = values[std::size_t(i)];
  const Extent shape[] = {rows, columns}, strides[] = {columns * stride, stride};
  const float* from = x.data() + offset;
  float* to = y.data() + offset;
  const Problem problem{rows_of(view(from, shape, strides), view(to, shape, strides)), from, to, DType::f32};
  launch_softmax(serial_launch(threads, streaming_bytes), problem);
  std::vector<std::uint32_t> bits;
  for (std::int64_t i = 0; i < rows * columns; ++i)
    bits.push_back(std::bit_cast<std::uint32_t>(y[std::size_t(offset + i * stride)]));
  return bits;
}

TEST(BlockLanguage, BitsDependOnTheRowAlone) {
  constexpr std::int64_t kRows = 40, kColumns = 1003;
  const std::vector<float> values = normal(kRows * kColumns);
  const std::vector<std::uint32_t> expected = softmax_bits(values, kRows, 0, 1, 1, 1 << 30);
  for (int threads : {1, 2, 3, 4})
    for (std::int64_t streaming_bytes : {std::int64_t{0}, std::int64_t{1} << 30})
      for (std::int64_t stride : {1, 2})
        for (std::int64_t offset : {0, 1, 5})
          EXPECT_EQ(softmax_bits(values, kRows, offset, stride, threads, streaming_bytes), expected)
              << threads << " " << streaming_bytes << " " << stride << " " << offset;
  for (std::int64_t row : {0, 17, 39}) {
    const auto begin = values.begin() + row * kColumns;
    const std::vector<std::uint32_t> alone = softmax_bits({begin, begin + kColumns}, 1, 0, 1, 1, 1 << 30);
    EXPECT_TRUE(std::equal(alone.begin(), alone.end(), expected.begin() + row * kColumns)) << row;
  }
}

TEST(BlockLanguage, MoreScratchThanThereIsEndsABuildWithAssertionsInASentence) {
  EXPECT_DEATH(
      {
        Team team(scratch);
        team.scratch(std::int64_t(kScratchBytes / sizeof(float)) + 1);
      },
      "more than a thread's 256 KiB");
}

TEST(BlockLanguage, HalfPrecisionRowsRoundOnceAtTheEnd) {
  const std::vector<float> x = normal(100);
  std::vector<bf16> narrow(x.size()), y(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) narrow[i] = from_double<bf16>(x[i]);
  scaled(Team(scratch), Row<const bf16>{narrow.data(), 100}, Row<bf16>{y.data(), 100}, 0.3f);
  for (std::size_t i = 0; i < x.size(); ++i)
    EXPECT_EQ(y[i].bits, from_double<bf16>(to_float(narrow[i]) * 0.3f).bits) << i;
}

}  // namespace
}  // namespace rooftile::language
