// What the cases of rooftile/ops/layer_norm cannot say: that each way through the caches gives the same bits,
// the other aliases, how exact large offsets are, the blocks of the weight gradients, and the sentences.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "rooftile/core/convert.h"
#include "rooftile/ops/layer_norm/layer_norm.h"
#include "rooftile/ops/layer_norm/layer_norm.problem.h"

namespace rooftile {
namespace {

constexpr std::int64_t kNever = std::int64_t{1} << 62;

Queue queue_of(int threads, bool streaming) {
  CpuOptions options;
  options.threads = threads;
  options.streaming_bytes = streaming ? 0 : kNever;
  return Queue::cpu(options);
}

template <class T>
T element(double value) {
  if constexpr (std::is_same_v<T, float>)
    return static_cast<float>(value);
  else
    return from_double<T>(value);
}

/// `count` elements `stride` apart, 64 bytes aligned; what lies between them is 77.
template <class T>
struct Buffer {
  std::vector<T> store;
  T* data;
  std::int64_t stride;

  Buffer(std::int64_t count, std::int64_t step, int seed, double mean = 0)
      : store(static_cast<std::size_t>(count * step + 64), element<T>(77)), stride(step) {
    data = store.data();
    while (reinterpret_cast<std::uintptr_t>(data) % 64 != 0) ++data;
    std::mt19937 random(static_cast<unsigned>(seed));
    std::normal_distribution<double> normal(mean);
    for (std::int64_t i = 0; i < count; ++i) data[i * step] = element<T>(normal(random));
  }
  View rows(std::int64_t rows, std::int64_t columns) {
    return view(data, {rows, columns}, {columns * stride, stride});
  }
  View row(std::int64_t count) { return view(data, {count}, {stride}); }
  /// The elements' bytes, without what lies between.
  std::string bits(std::int64_t count) const {
    std::string all;
    for (std::int64_t i = 0; i < count; ++i)
      all.append(reinterpret_cast<const char*>(data + i * stride), sizeof(T));
    return all;
  }
};

/// The bits of every output of a forward call, one after another.
template <class T, class W>
std::string forward_bits(const Queue& queue, std::int64_t rows, std::int64_t columns, bool residual,
                         std::int64_t step) {
  const std::int64_t n = rows * columns;
  Buffer<T> x(n, step, 1, 3), r(n, step, 2), y(n, step, 3), sum(n, step, 4);
  Buffer<W> weight(columns, step, 5), bias(columns, step, 6);
  Buffer<float> mean(rows, 1, 7), rstd(rows, 1, 8);
  LayerNormInputs in{.x = x.rows(rows, columns), .weight = weight.row(columns), .bias = bias.row(columns)};
  LayerNormOutputs out{.y = y.rows(rows, columns), .mean = mean.row(rows), .rstd = rstd.row(rows)};
  if (residual) {
    in.residual = r.rows(rows, columns);
    out.sum = sum.rows(rows, columns);
  }
  const Status status = layer_norm(queue, in, out);
  EXPECT_TRUE(status.ok()) << status.message();
  return y.bits(n) + sum.bits(n) + mean.bits(rows) + rstd.bits(rows);
}

template <class T, class W>
std::string backward_bits(const Queue& queue, std::int64_t rows, std::int64_t columns, std::int64_t step) {
  const std::int64_t n = rows * columns;
  Buffer<T> x(n, step, 1), dy(n, step, 2), dx(n, step, 3);
  Buffer<W> weight(columns, step, 4), dweight(columns, step, 5), dbias(columns, step, 6);
  Buffer<float> mean(rows, 1, 7), rstd(rows, 1, 8, 2);
  const LayerNormBackwardInputs in{x.rows(rows, columns), dy.rows(rows, columns), weight.row(columns),
                                   mean.row(rows), rstd.row(rows)};
  const LayerNormBackwardOutputs out{dx.rows(rows, columns), dweight.row(columns), dbias.row(columns)};
  std::size_t bytes = 0;
  Status status = layer_norm_backward_workspace(queue, in, out, bytes);
  EXPECT_TRUE(status.ok()) << status.message();
  Buffer<float> workspace(static_cast<std::int64_t>(bytes / 4), 1, 9);
  status = layer_norm_backward(queue, in, out, {}, {workspace.data, bytes});
  EXPECT_TRUE(status.ok()) << status.message();
  return dx.bits(n) + dweight.bits(columns) + dbias.bits(columns);
}

/// Both sides of a block of 2 KiB and of a group of four rows; rows that scratch holds, and one that it does
/// not.
const std::vector<std::pair<std::int64_t, std::int64_t>> kShapes = {
    {1, 1},    {1, 513},  {3, 512}, {4, 511},  {5, 512},  {9, 1025}, {2, 1500},
    {33, 700}, {40, 129}, {70, 64}, {6, 2049}, {4, 5000}, {1, 30000}};

template <class T, class W>
void expect_one_set_of_bits() {
  const Queue plain = queue_of(1, false);
  for (const auto& [rows, columns] : kShapes) {
    for (const bool residual : {false, true}) {
      const std::string bits = forward_bits<T, W>(plain, rows, columns, residual, 1);
      for (const int threads : {1, 2, 3, 7})
        for (const bool streaming : {false, true})
          EXPECT_TRUE((bits == forward_bits<T, W>(queue_of(threads, streaming), rows, columns, residual, 1)))
              << rows << "x" << columns << ", " << threads << " threads, streaming " << streaming
              << ", residual " << residual;
      EXPECT_TRUE((bits == forward_bits<T, W>(plain, rows, columns, residual, 2)))
          << rows << "x" << columns << ", every second element, residual " << residual;
    }
    const std::string bits = backward_bits<T, W>(plain, rows, columns, 1);
    for (const int threads : {1, 2, 3, 7})
      for (const bool streaming : {false, true})
        EXPECT_TRUE((bits == backward_bits<T, W>(queue_of(threads, streaming), rows, columns, 1)))
            << "backward, " << rows << "x" << columns << ", " << threads << " threads, streaming "
            << streaming;
    EXPECT_TRUE((bits == backward_bits<T, W>(plain, rows, columns, 2)))
        << "backward, " << rows << "x" << columns << ", every second element";
  }
}
TEST(LayerNorm, EachWayGivesTheSameBitsF32) { expect_one_set_of_bits<float, float>(); }
TEST(LayerNorm, EachWayGivesTheSameBitsF16) { expect_one_set_of_bits<f16, f16>(); }
TEST(LayerNorm, EachWayGivesTheSameBitsBf16) { expect_one_set_of_bits<bf16, bf16>(); }
TEST(LayerNorm, EachWayGivesTheSameBitsBf16WithFloatWeights) { expect_one_set_of_bits<bf16, float>(); }

/// The cases put y on x and sum on residual; here sum is on x, y on residual.
template <class T>
void expect_crossed_aliases() {
  constexpr std::int64_t kRows = 9, kColumns = 700, kCount = kRows * kColumns;
  for (const bool streaming : {false, true})
    for (const std::int64_t step : {1, 2}) {
      Buffer<T> x(kCount, step, 1), residual(kCount, step, 2), y(kCount, step, 3), sum(kCount, step, 4);
      const LayerNormInputs in{.x = x.rows(kRows, kColumns), .residual = residual.rows(kRows, kColumns)};
      const Queue queue = queue_of(2, streaming);
      ASSERT_TRUE(layer_norm(queue, in, {.y = y.rows(kRows, kColumns), .sum = sum.rows(kRows, kColumns)}));
      ASSERT_TRUE(
          layer_norm(queue, in, {.y = residual.rows(kRows, kColumns), .sum = x.rows(kRows, kColumns)}));
      EXPECT_EQ(y.bits(kCount), residual.bits(kCount)) << "streaming " << streaming << ", stride " << step;
      EXPECT_EQ(sum.bits(kCount), x.bits(kCount)) << "streaming " << streaming << ", stride " << step;
    }
}
TEST(LayerNorm, SumMayBeXAndYTheResidual) {
  expect_crossed_aliases<float>();
  expect_crossed_aliases<bf16>();
}

/// Statistics are those of the rounded h, so `sum` alone gives the same y.
TEST(LayerNorm, TheSumIsWhatWasNormalised) {
  constexpr std::int64_t kRows = 5, kColumns = 300, kCount = kRows * kColumns;
  Buffer<bf16> x(kCount, 1, 1), residual(kCount, 1, 2), y(kCount, 1, 3), sum(kCount, 1, 4),
      again(kCount, 1, 5);
  const Queue queue = queue_of(1, false);
  const LayerNormInputs in{.x = x.rows(kRows, kColumns), .residual = residual.rows(kRows, kColumns)};
  ASSERT_TRUE(layer_norm(queue, in, {.y = y.rows(kRows, kColumns), .sum = sum.rows(kRows, kColumns)}));
  ASSERT_TRUE(layer_norm(queue, {.x = sum.rows(kRows, kColumns)}, {.y = again.rows(kRows, kColumns)}));
  EXPECT_EQ(y.bits(kCount), again.bits(kCount));
  ASSERT_TRUE(layer_norm(queue, in, {.y = again.rows(kRows, kColumns)}));
  EXPECT_EQ(y.bits(kCount), again.bits(kCount)) << "without asking for the sum";
}

/// Twenty times closer than the cases' tolerance, which lets the rungs round their mean.
TEST(LayerNorm, ALargeOffsetCostsNothing) {
  constexpr std::int64_t kColumns = 1000;
  for (const double offset : {0.0, 1e3, 1e5}) {
    Buffer<float> x(kColumns, 1, 1, offset), y(kColumns, 1, 2);
    ASSERT_TRUE(layer_norm(queue_of(1, false), {.x = x.row(kColumns)}, {.y = y.row(kColumns)}));
    double mean = 0, squares = 0;
    for (std::int64_t i = 0; i < kColumns; ++i) mean += static_cast<double>(x.data[i]) / kColumns;
    for (std::int64_t i = 0; i < kColumns; ++i) {
      const double d = static_cast<double>(x.data[i]) - mean;
      squares += d * d / kColumns;
    }
    for (std::int64_t i = 0; i < kColumns; ++i)
      EXPECT_NEAR(static_cast<double>(y.data[i]),
                  (static_cast<double>(x.data[i]) - mean) / std::sqrt(squares + 1e-5), 2e-6)
          << "offset " << offset << ", element " << i;
  }
}
TEST(LayerNorm, AConstantRowGivesTheBias) {
  for (const std::int64_t columns : {1, 7, 100, 1000, 4097})
    for (const float value : {0.f, 0.1f, 1234.567f, -1e6f}) {
      Buffer<float> x(columns, 1, 1), y(columns, 1, 2), bias(columns, 1, 3), rstd(1, 1, 4);
      for (std::int64_t i = 0; i < columns; ++i) x.data[i] = value;
      ASSERT_TRUE(layer_norm(queue_of(1, false), {.x = x.rows(1, columns), .bias = bias.row(columns)},
                             {.y = y.rows(1, columns), .rstd = rstd.row(1)}));
      for (std::int64_t i = 0; i < columns; ++i)
        EXPECT_NEAR(y.data[i], bias.data[i], 1e-5f) << columns << " times " << value << ", element " << i;
      EXPECT_NEAR(rstd.data[0], 316.2278f, 0.05f) << columns << " times " << value;
    }
}

TEST(LayerNorm, BlocksFollowFromTheRowsAlone) {
  EXPECT_EQ(cpu_row_blocks(0), 0);
  EXPECT_EQ(cpu_row_blocks(1), 1);
  EXPECT_EQ(cpu_row_blocks(31), 1);
  EXPECT_EQ(cpu_row_blocks(32), 2);
  EXPECT_EQ(cpu_row_blocks(64), 4);
  EXPECT_EQ(cpu_row_blocks(std::int64_t{1} << 40), 64);
  for (std::int64_t rows = 1; rows < 3000; ++rows) {
    const std::int64_t blocks = cpu_row_blocks(rows);
    EXPECT_EQ(row_block_begin(rows, blocks, 0), 0);
    EXPECT_EQ(row_block_begin(rows, blocks, blocks), rows);
    for (std::int64_t b = 0; b < blocks && blocks > 1; ++b) {
      const std::int64_t size = row_block_begin(rows, blocks, b + 1) - row_block_begin(rows, blocks, b);
      EXPECT_GE(size, 16) << rows << " rows, block " << b;
      EXPECT_LE(size - rows / blocks, 1) << rows << " rows, block " << b;
    }
  }
}

TEST(LayerNorm, ATeamThatSharesItsSumsHasRows) {
  for (DType dtype : {DType::f32, DType::bf16})
    for (std::int64_t columns = 1; columns < 9000; columns += columns < 600 ? 1 : 52) {
      const bool odd = columns < 256 && columns % (dtype == DType::f32 ? 4 : 8) != 0;
      const bool warps =
          columns > 512 && columns <= (dtype == DType::f32 ? 2048 : 4096) && whole_vectors(columns, dtype);
      EXPECT_EQ(gpu_row_block_teams(1 << 20, columns, dtype) > 1, odd || warps) << columns;
      EXPECT_EQ(gpu_row_blocks(0, columns, dtype, 90), 0);
      for (std::int64_t rows : {1, 31, 32, 47, 1000, 524288, 1 << 30}) {
        const int teams = gpu_row_block_teams(rows, columns, dtype);
        const std::int64_t blocks = gpu_row_blocks(rows, columns, dtype, 90);
        EXPECT_TRUE(std::has_single_bit(static_cast<std::uint64_t>(blocks))) << rows << " x " << columns;
        if (warps) {
          EXPECT_EQ(blocks % teams, 0) << rows << " x " << columns;
        }
        if (teams > 1 && (warps || blocks > 1)) {
          EXPECT_GE(rows, warps ? 16 * blocks : 8 * blocks * teams) << rows << " x " << columns;
        }
      }
    }
}

TEST(LayerNorm, AsManyClustersAsFindPlaceAtOnce) {
  for (DType dtype : {DType::f32, DType::bf16}) {
    const auto blocks = [&](std::int64_t rows, std::int64_t columns) {
      return gpu_row_blocks(rows, columns, dtype, 90);
    };
    EXPECT_EQ(blocks(4096, 16384), 64);
    EXPECT_EQ(blocks(2048, 16385), 28);
    EXPECT_EQ(blocks(2048, 32768), 28);
    EXPECT_EQ(blocks(2048, 32769), 14);
    EXPECT_EQ(blocks(512, 65537), 7);
    EXPECT_EQ(blocks(512, 131072), 7);
    EXPECT_EQ(blocks(100, 32768), 6);  // 16 rows each
    EXPECT_EQ(blocks(31, 131072), 1);
    EXPECT_EQ(gpu_row_blocks(2048, 131072, dtype, 80), 32);
  }
}

TEST(LayerNorm, Refusals) {
  const Queue queue = queue_of(1, false);
  Buffer<float> x(12, 1, 1), y(12, 1, 2), weight(4, 1, 3), mean(4, 1, 4);
  Buffer<bf16> half(12, 1, 5);
  const LayerNormInputs in{.x = x.rows(3, 4)};
  const LayerNormOutputs out{.y = y.rows(3, 4)};
  const auto sentence = [&](LayerNormInputs i, LayerNormOutputs o, LayerNormOptions options = {}) {
    return std::string(layer_norm(queue, i, o, options).message());
  };
  EXPECT_EQ(sentence(in, out, {-1.f}), "layer_norm: eps is -1, must be finite and not negative");
  EXPECT_EQ(sentence(in, out, {NAN}), "layer_norm: eps is nan, must be finite and not negative");
  EXPECT_EQ(sentence({.x = x.rows(3, 4), .weight = weight.row(3)}, out),
            "layer_norm: weight is 3 f32, must be 4 where x is 3x4 f32");
  EXPECT_EQ(sentence(in, {.y = y.rows(3, 4), .mean = mean.row(4)}),
            "layer_norm: mean is 4 f32, must be 3 where x is 3x4 f32");
  EXPECT_EQ(
      sentence({.x = half.rows(3, 4), .weight = weight.row(4), .bias = half.row(4)}, {.y = half.rows(3, 4)}),
      "layer_norm: bias is 4 bf16, must be f32 as weight is");
  EXPECT_NE(sentence(in, {.y = y.rows(3, 4), .sum = y.rows(3, 4)}).find("layer_norm: output sum"),
            std::string::npos);
  EXPECT_EQ(sentence(in, out, {1e-5f, "01_scalar"}),
            "layer_norm: the ladder's rungs take a weight and a bias, weight is absent");

  Buffer<float> dx(12, 1, 6), dweight(4, 1, 7), workspace(64, 1, 8);
  const LayerNormBackwardInputs back{x.rows(3, 4), y.rows(3, 4), weight.row(4), mean.row(3), mean.row(3)};
  const LayerNormBackwardOutputs gradients{.dx = dx.rows(3, 4), .dweight = dweight.row(4)};
  std::size_t bytes = 0;
  ASSERT_TRUE(layer_norm_backward_workspace(queue, back, gradients, bytes));
  EXPECT_EQ(bytes, 64u);
  EXPECT_EQ(
      std::string(layer_norm_backward(queue, back, gradients, {}, {workspace.data, 63}).message()),
      "layer_norm_backward: needs a workspace of 64 bytes (ask layer_norm_backward_workspace), was given 63");
  ASSERT_TRUE(layer_norm_backward_workspace(queue, back, {.dx = dx.rows(3, 4)}, bytes));
  EXPECT_EQ(bytes, 0u);
  EXPECT_TRUE(layer_norm_backward(queue, back, {.dx = dx.rows(3, 4)}));
}

}  // namespace
}  // namespace rooftile
