// What the rungs of transpose ask of memory, exactly: the lesson's figures.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <fstream>
#include <set>
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

/// x of m x n elements whose rows lie `x_pitch` apart, as validation would pass it on.
template <class T>
TransposeProblem problem_of(const T* x, T* y, DType dtype, std::int64_t m, std::int64_t n,
                            std::int64_t x_pitch, std::int64_t y_pitch) {
  TransposeProblem p{};
  p.x = x;
  p.y = y;
  p.dtype = dtype;
  p.m = m;
  p.n = n;
  p.plain = x_pitch == n && y_pitch == m;
  p.down = {m, x_pitch, 1};
  p.across = {n, 1, y_pitch};
  return p;
}
CudaLaunch hopper() {
  CudaLaunch launch{};
  launch.architecture = 90;
  launch.threads = 1;
  return launch;
}

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
    const TransposeProblem p = problem_of(x, y, dtype, m, n, x_pitch, y_pitch);
    const CudaLaunch launch = hopper();
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

/// clang takes a vector apart where its members are used, and copies one whole by memmove, which the checks
/// do not see: exact figures of vectors come from g++.
#if defined(__clang__)
constexpr bool kSeesVectors = false;
#else
constexpr bool kSeesVectors = true;
#endif

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
  if (!kSeesVectors) GTEST_SKIP() << "vectors' figures come from g++";
  expect_best(32, 16384);
  EXPECT_EQ(at("load", kGlobalLoad).access_bytes, 16);
  EXPECT_EQ(at("store", kGlobalStore).access_bytes, 16);
}

// The library's: one tile of each width. A request is 32 lanes' 16 bytes.
TEST_F(TransposeTrace, TileOfEachWidth) {
  if (!kSeesVectors) GTEST_SKIP() << "vectors' figures come from g++";
  file_ = "transpose.cu";
  run<std::uint8_t>("tile", DType::u8, 256, 128, 128, 256);
  expect_best(64, 32768);
  run<std::uint16_t>("tile", DType::bf16, 128, 128, 128, 128);
  expect_best(64, 32768);
  run<std::uint32_t>("tile", DType::f32, 64, 64, 64, 64);
  expect_best(32, 16384);
  run<std::uint64_t>("tile", DType::f64, 32, 32, 32, 32);
  expect_best(16, 8192);
}

// Rows that begin anywhere: no sector of y is stored in two parts, but for the words at both ends of a row
// that it has not all of.
TEST_F(TransposeTrace, RowsThatBeginAnywhereAreStoredInWholeSectors) {
  file_ = "transpose.cu";
  const auto whole = [&]<class T>(DType dtype, std::int64_t y_pitch) {
    constexpr std::int64_t kM = 3 * 256 / sizeof(T) + 5, kN = 64, kWord = sizeof(T) > 4 ? sizeof(T) : 4;
    run<T>("tile", dtype, kM, kN, kN + 1, y_pitch);
    std::set<std::int64_t> sectors;
    for (std::int64_t j = 0; j < kN; ++j) {
      const std::int64_t begin = j * y_pitch * std::int64_t(sizeof(T)),
                         end = begin + kM * std::int64_t(sizeof(T));
      for (std::int64_t word = (begin + kWord - 1) / kWord * kWord; word + kWord <= end; word += kWord)
        sectors.insert(j << 32 | word / 32);
    }
    // The trace takes a line's n-th turns together, and lanes that have no whole word at a row's begin come a
    // turn late: of f32 one sector more for each row that does not begin with one, of narrower elements some.
    // Were it stored where its tiles begin, each request of 4 sectors would touch 5.
    const std::uint64_t counted = at("sectors store", kGlobalStore).sectors;
    std::size_t late = 0;
    for (std::int64_t j = 0; j < kN; ++j) late += sizeof(T) == 4 && j * y_pitch % 8 != 0;
    // (clang makes one store of both branches' where words are elements.)
    if (sizeof(T) >= 4 && kSeesVectors)
      EXPECT_EQ(counted, sectors.size() + late) << name(dtype);
    else
      EXPECT_LT(counted, sectors.size() * 11 / 10) << name(dtype);
    const auto bare = [&](const std::string& mark, TraceKind kind) {
      const TraceLine line = at(mark, kind);
      EXPECT_EQ(line.wavefronts, line.requests * (sizeof(T) > 4 ? 2 : 1)) << mark << " " << name(dtype);
    };
    bare("sectors in", kSharedStore);
    bare("sectors out", kSharedLoad);
    if (sizeof(T) < 4) bare("sectors next", kSharedLoad);
  };
  whole.operator()<std::uint8_t>(DType::u8, 801);
  whole.operator()<std::uint16_t>(DType::bf16, 407);
  whole.operator()<std::uint32_t>(DType::f32, 203);
  whole.operator()<std::uint64_t>(DType::f64, 103);
}

// Thin: one element a lane, and still whole rows on both sides. Of rows 260 bytes apart, one in eight begins
// at a sector; the others' 128 bytes touch a fifth one.
TEST_F(TransposeTrace, ThinMatricesAreCoalesced) {
  file_ = "transpose.cu";
  run<std::uint32_t>("tile", DType::f32, 32, 128, 129, 33);
  EXPECT_EQ(at("any load", kGlobalLoad).requests, 128u);
  expect_shared("any in", kSharedStore, 128, 128);
  expect_shared("any out", kSharedLoad, 128, 128);
  expect_global("any store", kGlobalStore, 128, 128 / 8 * (4 + 7 * 5), 16384. / (128 / 8 * (4 + 7 * 5) * 32));
  run<std::uint8_t>("tile", DType::u8, 32, 128, 129, 33);
  expect_shared("any in", kSharedStore, 128, 128);
  expect_shared("any out", kSharedLoad, 128, 128);
  run<std::uint16_t>("tile", DType::bf16, 32, 128, 129, 33);
  expect_shared("any in", kSharedStore, 128, 128);
  expect_shared("any out", kSharedLoad, 128, 128);
  run<std::uint64_t>("tile", DType::f64, 32, 128, 129, 33);
  expect_shared("any in", kSharedStore, 128, 256);  // 256 bytes take two passes
  expect_shared("any out", kSharedLoad, 128, 256);
}

}  // namespace
}  // namespace rooftile::emulated::test
