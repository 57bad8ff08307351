// What softmax's and layer_norm's rungs for GPUs ask of memory, line by line: the figures that the two
// lessons state.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "rooftile/backend/emulated/trace.h"
#include "rooftile/ops/layer_norm/ladder/ladder.h"
#include "rooftile/ops/softmax/ladder/ladder.h"

namespace rooftile::emulated::test {
namespace {
using enum TraceKind;

CudaLaunch sm_90() {
  CudaLaunch launch{};
  launch.architecture = 90;
  launch.multiprocessors = launch.threads = 1;
  return launch;
}

/// Dense rows that begin where a GPU's allocator would put them.
class Matrix {
 public:
  Matrix(std::int64_t rows, std::int64_t columns)
      : data_(static_cast<float*>(
            std::aligned_alloc(256, (static_cast<std::size_t>(rows * columns) * 4 + 255) / 256 * 256))) {
    for (std::int64_t i = 0; i < rows * columns; ++i)
      data_[i] = static_cast<float>(i * 7919 % 1013) / 100 - 5;
  }
  ~Matrix() { std::free(data_); }
  Matrix(const Matrix&) = delete;
  Matrix& operator=(const Matrix&) = delete;
  float* data() { return data_; }

 private:
  float* data_;
};

template <int kOperands>
Rows<kOperands> dense(std::int64_t rows, std::int64_t columns) {
  Rows<kOperands> r;
  r.rows = rows;
  r.columns = columns;
  r.rank = 1;
  r.extent[0] = rows;
  for (int o = 0; o < kOperands; ++o) {
    r.stride[o][0] = columns;
    r.column_stride[o] = 1;
  }
  return r;
}

/// The traces of rungs on rows x columns.
class RowLadders : public testing::Test {
 protected:
  using Softmax = Status (*)(const CudaLaunch&, const SoftmaxProblem&);
  using LayerNorm = Status (*)(const CudaLaunch&, const LayerNormProblem&);

#if defined(__clang__)
  void SetUp() override {
    GTEST_SKIP()
        << "clang++ does not tell of a read that a write to the same place follows, and takes vectors apart";
  }
#endif

  void trace(Softmax rung, std::int64_t rows, std::int64_t columns) {
    Matrix x(rows, columns), y(rows, columns);
    const SoftmaxProblem p{dense<2>(rows, columns), x.data(), y.data(), DType::f32, 1, false};
    start_trace();
    const Status s = rung(sm_90(), p);
    lines_ = stop_trace();
    ASSERT_TRUE(s.ok()) << s.message();
  }
  void trace(LayerNorm rung, std::int64_t rows, std::int64_t columns) {
    using P = LayerNormProblem;
    Matrix x(rows, columns), y(rows, columns), weight(1, columns), bias(1, columns);
    Matrix mean(rows, 1), rstd(rows, 1);
    P p{};
    p.rows = dense<P::kOperands>(rows, columns);
    p.vectors[P::kWeight] = {weight.data(), 1};
    p.vectors[P::kBias] = {bias.data(), 1};
    p.dtype = p.vector_dtype = DType::f32;
    p.options[0] = 1e-5f;
    for (int o : {P::kMean, P::kRstd}) p.rows.stride[o][0] = 1;
    p.data[P::kX] = x.data();
    p.data[P::kY] = y.data();
    p.data[P::kMean] = mean.data();
    p.data[P::kRstd] = rstd.data();
    start_trace();
    const Status s = rung(sm_90(), p);
    lines_ = stop_trace();
    ASSERT_TRUE(s.ok()) << s.message();
  }

  /// Of the line of rooftile/ops/PATH that ends in // [mark].
  TraceLine at(const std::string& path, const std::string& mark, TraceKind kind) {
    std::ifstream file(ROOFTILE_SOURCE_DIR "/rooftile/ops/" + path);
    std::string text;
    int number = 1;
    while (std::getline(file, text) && text.find("// [" + mark + "]") == std::string::npos) ++number;
    for (const TraceLine& line : lines_)
      if (line.line == number && line.kind == kind && std::string(line.file).find(path) != std::string::npos)
        return line;
    std::string all;
    for (const TraceLine& line : lines_)
      all += std::string(line.file) + ":" + std::to_string(line.line) + " " + name(line.kind) + "\n";
    ADD_FAILURE() << "no " << name(kind) << " in " << path << ":" << number << " (" << mark
                  << "); there are\n"
                  << all;
    return {};
  }
  void expect_global(const std::string& path, const std::string& mark, TraceKind kind, std::uint64_t requests,
                     double sectors_a_request, double used_share) {
    const TraceLine line = at(path, mark, kind);
    EXPECT_EQ(line.requests, requests) << path << " " << mark;
    EXPECT_DOUBLE_EQ(line.sectors_per_request(), sectors_a_request) << path << " " << mark;
    EXPECT_DOUBLE_EQ(line.used_share(), used_share) << path << " " << mark;
  }

  struct Sum {
    std::uint64_t requests = 0, bytes = 0, moved = 0, wavefronts = 0;
  };
  /// Over all lines that load or store: global memory, or shared.
  Sum sum(bool shared) const {
    Sum s;
    for (const TraceLine& l : lines_) {
      if ((l.kind == kSharedLoad || l.kind == kSharedStore) != shared) continue;
      s.requests += l.requests;
      s.bytes += l.bytes;
      s.moved += 32 * l.sectors;
      s.wavefronts += l.wavefronts;
    }
    return s;
  }

  std::vector<TraceLine> lines_;
};

constexpr std::int64_t kRows = 128, kColumns = 1024;
constexpr std::uint64_t kUnit = kRows * kColumns * 4;  // 512 KiB: x, or y

TEST_F(RowLadders, SoftmaxNaive) {
  const std::string file = "softmax/ladder/01_naive.cu";
  trace(ladder::launch_softmax_naive, kRows, kColumns);
  for (const char* mark : {"find the maximum", "read again", "divide"})
    expect_global(file, mark, kGlobalLoad, 4096, 32, 0.125);
  for (const char* mark : {"write", "divide"}) expect_global(file, mark, kGlobalStore, 4096, 32, 0.125);
  EXPECT_EQ(sum(false).bytes, 5 * kUnit);
  EXPECT_EQ(sum(false).moved, 40 * kUnit);  // 20 MiB
  EXPECT_EQ(sum(true).requests, 0u);
}
TEST_F(RowLadders, SoftmaxBlock) {
  const std::string file = "softmax/ladder/02_block.cu";
  trace(ladder::launch_softmax_block, kRows, kColumns);
  for (const char* mark : {"find the maximum", "read again", "divide"})
    expect_global(file, mark, kGlobalLoad, 4096, 4, 1);
  for (const char* mark : {"write", "divide"}) expect_global(file, mark, kGlobalStore, 4096, 4, 1);
  EXPECT_EQ(sum(false).moved, 5 * kUnit);  // 2.5 MiB
  EXPECT_EQ(sum(true).requests, 13312u);
  EXPECT_EQ(sum(true).wavefronts, 13312u);  // no conflicts
}
TEST_F(RowLadders, SoftmaxShuffles) {
  trace(ladder::launch_softmax_shuffles, kRows, kColumns);
  EXPECT_EQ(sum(false).requests, 5 * 4096u);
  EXPECT_EQ(sum(false).moved, 5 * kUnit);
  EXPECT_EQ(sum(true).requests, 4096u);
  EXPECT_EQ(sum(true).wavefronts, 4096u);
}
TEST_F(RowLadders, SoftmaxRegisters) {
  const std::string file = "softmax/ladder/04_registers.cu";
  trace(ladder::launch_softmax_registers, kRows, kColumns);
  expect_global(file, "read", kGlobalLoad, 4096, 4, 1);
  expect_global(file, "write", kGlobalStore, 4096, 4, 1);
  EXPECT_EQ(sum(false).moved, 2 * kUnit);  // 1 MiB
  EXPECT_EQ(sum(true).requests, 512u);
}
TEST_F(RowLadders, SoftmaxWords) {
  const std::string file = "softmax/ladder/gpu_row.h";
  trace(ladder::launch_softmax_words, kRows, kColumns);
  expect_global(file, "load a word", kGlobalLoad, 1024, 16, 1);
  expect_global(file, "store a word", kGlobalStore, 1024, 16, 1);
  EXPECT_EQ(sum(false).moved, 2 * kUnit);
  EXPECT_EQ(sum(true).requests, 512u);
  trace(ladder::launch_softmax_words, kRows, 32);  // 8 of a warp's 32 lanes have a word
  expect_global(file, "load a word", kGlobalLoad, 128, 4, 1);
  EXPECT_EQ(at(file, "load a word", kGlobalLoad).lanes, 8 * 128u);
  // No whole words: 4 bytes of each 16, in 16 sectors, or 17 where the first lies alone.
  trace(ladder::launch_softmax_words, kRows, 1023);
  expect_global(file, "load one", kGlobalLoad, 1024, 16.5, 0.25 * 16 / 16.5);
}
/// The top rungs move what the lesson says that softmax moves: x once, y once.
TEST_F(RowLadders, SoftmaxTeams) {
  const std::string file = "softmax/ladder/gpu_row.h";
  for (const Softmax rung : {ladder::launch_softmax_teams, ladder::launch_softmax_exp2}) {
    for (const std::int64_t columns : {32, 256, 1024, 4096}) {
      trace(rung, kRows, columns);
      const auto needed = static_cast<std::uint64_t>(2 * kRows * columns * 4);
      EXPECT_EQ(sum(false).bytes, needed) << columns;
      EXPECT_EQ(sum(false).moved, needed) << columns;
      EXPECT_EQ(sum(true).requests == 0, columns <= 1024) << columns;
    }
    trace(rung, kRows, kColumns);
    EXPECT_EQ(sum(false).requests, 2048u);
    trace(rung, kRows, 32);
    expect_global(file, "load a word", kGlobalLoad, 32, 16, 1);
    EXPECT_EQ(at(file, "load a word", kGlobalLoad).lanes, 32 * 32u);
  }
}

/// Beside x and y: the weight and the bias for each row, the mean and rstd of each.
constexpr std::uint64_t kWeights = 2 * kUnit, kStatistics = 2 * kRows * 4;

TEST_F(RowLadders, LayerNormNaive) {
  const std::string file = "layer_norm/ladder/01_naive.cu";
  trace(ladder::launch_layer_norm_naive, kRows, kColumns);
  for (const char* mark : {"for the mean", "for the variance", "read again"})
    expect_global(file, mark, kGlobalLoad, 4096, 32, 0.125);
  expect_global(file, "write", kGlobalStore, 4096, 32, 0.125);
  expect_global(file, "write", kGlobalLoad, 2 * 4096, 1, 0.125);  // all lanes want one word of the weight
  expect_global("layer_norm/ladder/gpu_row.h", "mean", kGlobalStore, 4, 4, 1);
  EXPECT_EQ(sum(false).bytes, 4 * kUnit + kWeights + kStatistics);
  EXPECT_EQ(sum(false).moved, 32 * kUnit + kWeights / 4 + kStatistics);
}
TEST_F(RowLadders, LayerNormBlock) {
  const std::string file = "layer_norm/ladder/02_block.cu";
  trace(ladder::launch_layer_norm_block, kRows, kColumns);
  for (const char* mark : {"for the mean", "for the variance", "read again"})
    expect_global(file, mark, kGlobalLoad, 4096, 4, 1);
  expect_global(file, "write", kGlobalStore, 4096, 4, 1);
  expect_global(file, "write", kGlobalLoad, 2 * 4096, 4, 1);
  expect_global("layer_norm/ladder/gpu_row.h", "mean", kGlobalStore, 128, 1, 0.125);
  EXPECT_EQ(sum(false).bytes, 4 * kUnit + kWeights + kStatistics);
  EXPECT_EQ(sum(true).requests, 13312u);
  EXPECT_EQ(sum(true).wavefronts, 13312u);
}
TEST_F(RowLadders, LayerNormShuffles) {
  trace(ladder::launch_layer_norm_shuffles, kRows, kColumns);
  EXPECT_EQ(sum(false).bytes, 4 * kUnit + kWeights + kStatistics);
  EXPECT_EQ(sum(true).requests, 4096u);
  EXPECT_EQ(sum(true).wavefronts, 4096u);
}
TEST_F(RowLadders, LayerNormRegisters) {
  const std::string file = "layer_norm/ladder/04_registers.cu";
  trace(ladder::launch_layer_norm_registers, kRows, kColumns);
  expect_global(file, "read", kGlobalLoad, 4096, 4, 1);
  expect_global(file, "weight", kGlobalLoad, 4096, 4, 1);
  expect_global(file, "bias", kGlobalLoad, 4096, 4, 1);
  expect_global(file, "write", kGlobalStore, 4096, 4, 1);
  EXPECT_EQ(sum(false).bytes, 2 * kUnit + kWeights + kStatistics);
  EXPECT_EQ(sum(true).requests, 1024u);
}
TEST_F(RowLadders, LayerNormWords) {
  const std::string file = "layer_norm/ladder/gpu_row.h";
  trace(ladder::launch_layer_norm_words, kRows, kColumns);
  expect_global(file, "load a word", kGlobalLoad, 3 * 1024, 16, 1);  // x, the weight, the bias
  expect_global(file, "store a word", kGlobalStore, 1024, 16, 1);
  EXPECT_EQ(sum(false).bytes, 2 * kUnit + kWeights + kStatistics);
  EXPECT_EQ(sum(true).requests, 1024u);
  trace(ladder::launch_layer_norm_words, kRows, 32);
  expect_global(file, "store a word", kGlobalStore, 128, 4, 1);
}
/// The top rung asks for what the lesson says: x once, y once, the statistics; and for each row the weight
/// and the bias, of which memory moves one row.
TEST_F(RowLadders, LayerNormTeams) {
  const std::string file = "layer_norm/ladder/gpu_row.h";
  for (const std::int64_t columns : {32, 256, 1024, 4096}) {
    trace(ladder::launch_layer_norm_teams, kRows, columns);
    const auto row = static_cast<std::uint64_t>(columns * 4);
    const std::uint64_t stated = 2 * kRows * row + 2 * row + kStatistics;
    EXPECT_EQ(sum(false).bytes - (kRows - 1) * 2 * row, stated) << columns;
    EXPECT_EQ(sum(true).requests == 0, columns <= 512) << columns;
  }
  trace(ladder::launch_layer_norm_teams, kRows, kColumns);
  EXPECT_EQ(sum(true).requests, 1024u);
  trace(ladder::launch_layer_norm_teams, kRows, 32);
  expect_global(file, "store a word", kGlobalStore, 32, 16, 1);
}

}  // namespace
}  // namespace rooftile::emulated::test
