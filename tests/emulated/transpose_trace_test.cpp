// What the rungs of transpose ask of memory, exactly: the lesson's figures.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include "rooftile/backend/emulated/trace.h"
#include "rooftile/core/plugin.h"
#include "rooftile/ops/transpose/transpose.problem.h"

namespace rooftile {
extern const PluginEntry transpose_cuda_kernels[];  // of transpose.cu: each variant's launch
}

namespace rooftile::emulated::test {
namespace {
using enum TraceKind;

struct alignas(128) Line {
  std::byte bytes[128];
};

class TransposeTrace : public testing::Test {
 protected:
  /// Traces `variant` on x, m x n elements with rows `x_pitch` apart, and looks whether y is its transpose.
  template <class T>
  void run(const std::string& variant, DType dtype, std::int64_t m, std::int64_t n, std::int64_t x_pitch,
           std::int64_t y_pitch) {
    std::vector<Line> x_lines(static_cast<std::size_t>(m * x_pitch) * sizeof(T) / 128 + 1);
    std::vector<Line> y_lines(static_cast<std::size_t>(n * y_pitch) * sizeof(T) / 128 + 1);
    T* x = reinterpret_cast<T*>(x_lines.data());
    T* y = reinterpret_cast<T*>(y_lines.data());
    for (std::int64_t k = 0; k < m * x_pitch; ++k) x[k] = static_cast<T>(k * 40503 >> 3);
    TransposeProblem p{};
    p.x = x;
    p.y = y;
    p.dtype = dtype;
    p.m = m;
    p.n = n;
    p.plain = x_pitch == n && y_pitch == m;
    p.down = {m, x_pitch, 1};
    p.across = {n, 1, y_pitch};
    CudaLaunch launch{};
    launch.architecture = 90;
    launch.threads = 1;
    const PluginEntry* entry = transpose_cuda_kernels;
    while (entry->variant && entry->variant != variant) ++entry;
    ASSERT_NE(entry->variant, nullptr) << "no variant " << variant;
    start_trace();
    const Status s = entry->kernel(&launch, &p);
    lines_ = stop_trace();
    ASSERT_TRUE(s.ok()) << s.message();
    for (std::int64_t i = 0; i < m; ++i)
      for (std::int64_t j = 0; j < n; ++j)
        ASSERT_EQ(y[j * y_pitch + i], x[i * x_pitch + j]) << variant << " at " << i << ", " << j;
  }
  void run_floats(const std::string& variant) {
    file_ = "ladder/" + variant + ".cu";
    run<std::uint32_t>(variant, DType::f32, 64, 64, 64, 64);
  }

  /// The trace of the line that ends in // [mark].
  TraceLine at(const std::string& mark, TraceKind kind) {
    std::ifstream file(ROOFTILE_SOURCE_DIR "/rooftile/ops/transpose/" + file_);
    std::string text;
    int number = 1;
    while (std::getline(file, text) && text.find("// [" + mark + "]") == std::string::npos) ++number;
    for (const TraceLine& line : lines_)
      if (line.line == number && line.kind == kind && std::string(line.file).find(file_) != std::string::npos)
        return line;
    std::string all;
    for (const TraceLine& line : lines_)
      all += std::string(line.file) + ":" + std::to_string(line.line) + " " + name(line.kind) + "\n";
    ADD_FAILURE() << "no " << name(kind) << " in line " << number << " of " << file_ << " (" << mark
                  << "); there are\n"
                  << all;
    return {};
  }
  void expect_global(const std::string& mark, TraceKind kind, std::uint64_t requests, std::uint64_t sectors,
                     double used_share) {
    const TraceLine line = at(mark, kind);
    EXPECT_EQ(line.requests, requests) << file_ << " " << mark;
    EXPECT_EQ(line.sectors, sectors) << file_ << " " << mark;
    EXPECT_DOUBLE_EQ(line.used_share(), used_share) << file_ << " " << mark;
  }
  void expect_shared(const std::string& mark, TraceKind kind, std::uint64_t requests,
                     std::uint64_t wavefronts) {
    const TraceLine line = at(mark, kind);
    EXPECT_EQ(line.requests, requests) << file_ << " " << mark;
    EXPECT_EQ(line.wavefronts, wavefronts) << file_ << " " << mark;
  }
  /// Both sides in whole sectors, and as few passes over the banks as the bytes take.
  void expect_best(std::uint64_t requests, std::uint64_t bytes, const std::string& prefix = "") {
    expect_global(prefix + "load", kGlobalLoad, requests, bytes / 32, 1);
    expect_shared(prefix + "in", kSharedStore, requests, bytes / 128);
    expect_shared(prefix + "out", kSharedLoad, requests, bytes / 128);
    expect_global(prefix + "store", kGlobalStore, requests, bytes / 32, 1);
  }

  std::string file_;
  std::vector<TraceLine> lines_;
};

// 64x64 floats: 128 warps of one element a lane.
TEST_F(TransposeTrace, NaiveWritesColumns) {
  run_floats("01_naive");
  expect_global("load", kGlobalLoad, 128, 128 * 4, 1);
  expect_global("store", kGlobalStore, 128, 128 * 32, 0.125);
}
TEST_F(TransposeTrace, CoalescedWritesReadColumns) {
  run_floats("02_coalesced_writes");
  expect_global("load", kGlobalLoad, 128, 128 * 32, 0.125);
  expect_global("store", kGlobalStore, 128, 128 * 4, 1);
}
TEST_F(TransposeTrace, SharedTakesTurnsAtOneBank) {
  run_floats("03_shared");
  expect_global("load", kGlobalLoad, 128, 128 * 4, 1);
  expect_shared("in", kSharedStore, 128, 128);
  expect_shared("out", kSharedLoad, 128, 128 * 32);
  expect_global("store", kGlobalStore, 128, 128 * 4, 1);
}
TEST_F(TransposeTrace, PaddedHasNoConflicts) {
  run_floats("04_padded");
  expect_best(128, 16384);
}
TEST_F(TransposeTrace, VectorisedAsksAQuarterAsOften) {
  run_floats("05_vectorised");
  expect_best(32, 16384);
  EXPECT_EQ(at("load", kGlobalLoad).access_bytes, 16);
  EXPECT_EQ(at("store", kGlobalStore).access_bytes, 16);
}

// The library's: one tile of each width. A request is 32 lanes' 16 bytes.
TEST_F(TransposeTrace, TileOfEachWidth) {
  file_ = "transpose.cu";
  run<std::uint8_t>("tile", DType::u8, 128, 128, 128, 128);
  expect_best(32, 16384);
  run<std::uint16_t>("tile", DType::bf16, 64, 64, 64, 64);
  expect_best(16, 8192);
  run<std::uint32_t>("tile", DType::f32, 64, 64, 64, 64);
  expect_best(32, 16384);
  run<std::uint64_t>("tile", DType::f64, 32, 32, 32, 32);
  expect_best(16, 8192);
}

// Rows that no word of 16 bytes divides: one element a lane, and still whole rows on both sides. Of rows 260
// bytes apart, one in eight begins at a sector; the others' 128 bytes touch a fifth one.
TEST_F(TransposeTrace, AnyShapeIsCoalesced) {
  file_ = "transpose.cu";
  run<std::uint32_t>("tile", DType::f32, 64, 64, 65, 67);
  constexpr std::uint64_t kSectors = 2 * (8 * 4 + 56 * 5);
  expect_global("any load", kGlobalLoad, 128, kSectors, 16384 / (32. * kSectors));
  expect_shared("any in", kSharedStore, 128, 128);
  expect_shared("any out", kSharedLoad, 128, 128);
  expect_global("any store", kGlobalStore, 128, kSectors, 16384 / (32. * kSectors));
}
TEST_F(TransposeTrace, AnyWidthHasNoConflicts) {
  file_ = "transpose.cu";
  run<std::uint8_t>("tile", DType::u8, 64, 64, 65, 65);
  expect_shared("any in", kSharedStore, 128, 128);
  expect_shared("any out", kSharedLoad, 128, 128);
  run<std::uint16_t>("tile", DType::bf16, 64, 64, 65, 65);
  expect_shared("any in", kSharedStore, 128, 128);
  expect_shared("any out", kSharedLoad, 128, 128);
  run<std::uint64_t>("tile", DType::f64, 64, 64, 65, 65);
  expect_shared("any in", kSharedStore, 128, 256);  // 256 bytes take two passes
  expect_shared("any out", kSharedLoad, 128, 256);
}

}  // namespace
}  // namespace rooftile::emulated::test
