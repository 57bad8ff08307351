// The trace's figures for textbook kernels, exactly.
#include <gtest/gtest.h>

#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

#include "rooftile/backend/emulated/trace.h"
#include "tests/emulated/traced.h"

namespace rooftile::emulated::test {
namespace {

class Trace : public testing::Test {
 protected:
  void run(const std::string& kernel, int n) {
    std::fill(x_.begin(), x_.end(), 1.f);
    std::fill(y_.begin(), y_.end(), 0.f);
    start_trace();
    const Status s = launch_traced(kernel, x_.data(), y_.data(), n);
    lines_ = stop_trace(&totals_);
    ASSERT_TRUE(s.ok()) << s.message();
  }
  /// The trace of the line of traced.cu that ends in // [mark].
  TraceLine at(const std::string& mark, TraceKind kind) {
    std::ifstream file(ROOFTILE_SOURCE_DIR "/tests/emulated/traced.cu");
    std::string text;
    int number = 1;
    while (std::getline(file, text) && text.find("// [" + mark + "]") == std::string::npos) ++number;
    for (const TraceLine& line : lines_)
      if (line.line == number && line.kind == kind &&
          std::string(line.file).find("traced.cu") != std::string::npos)
        return line;
    std::string all;
    for (const TraceLine& line : lines_)
      all += std::string(line.file) + ":" + std::to_string(line.line) + " " + name(line.kind) + "\n";
    ADD_FAILURE() << "no " << name(kind) << " in line " << number << " (" << mark << "); there are\n" << all;
    return {};
  }
  void expect_global(const std::string& mark, TraceKind kind, std::uint64_t requests, std::uint64_t sectors,
                     double used_share) {
    const TraceLine line = at(mark, kind);
    EXPECT_EQ(line.requests, requests) << mark;
    EXPECT_EQ(line.sectors, sectors) << mark;
    EXPECT_DOUBLE_EQ(line.used_share(), used_share) << mark;
    EXPECT_EQ(line.wavefronts, 0u);
    EXPECT_EQ(line.conflicts, 0u);
  }
  void expect_totals(std::uint64_t sectors, std::uint64_t read_bytes, std::uint64_t written_bytes,
                     std::uint64_t different_bytes) {
    EXPECT_EQ(totals_.launches, 1u);
    EXPECT_EQ(totals_.sectors, sectors);
    EXPECT_EQ(totals_.read_bytes, read_bytes);
    EXPECT_EQ(totals_.written_bytes, written_bytes);
    EXPECT_EQ(totals_.different_bytes, different_bytes);
  }
  void expect_shared(const std::string& mark, TraceKind kind, std::uint64_t requests,
                     std::uint64_t wavefronts, std::uint64_t conflicts) {
    const TraceLine line = at(mark, kind);
    EXPECT_EQ(line.requests, requests) << mark;
    EXPECT_EQ(line.wavefronts, wavefronts) << mark;
    EXPECT_EQ(line.conflicts, conflicts) << mark;
    EXPECT_EQ(line.sectors, 0u);
  }

  struct alignas(128) Line {
    float values[32];
  };
  // Aligned as a GPU's allocator would.
  std::vector<Line> memory_ = std::vector<Line>(2 * 4096 / 32);
  struct Span {
    float* first;
    float* last;
    float* data() const { return first; }
    float* begin() const { return first; }
    float* end() const { return last; }
  };
  Span x_{&memory_[0].values[0], &memory_[0].values[0] + 4096};
  Span y_{&memory_[0].values[0] + 4096, &memory_[0].values[0] + 8192};
  std::vector<TraceLine> lines_;
  TraceTotals totals_{};
};
using enum TraceKind;

TEST_F(Trace, Copy) {
  run("copy", 4096);  // 128 warps, 4 sectors each
  expect_global("copy", kGlobalLoad, 128, 512, 1);
  expect_global("copy", kGlobalStore, 128, 512, 1);
  EXPECT_EQ(at("copy", kGlobalLoad).bytes, 16384u);
  expect_totals(1024, 16384, 16384, 32768);
  run("copy", 40);  // the second warp has 8 lanes: one sector
  expect_global("copy", kGlobalLoad, 2, 5, 1);
  EXPECT_EQ(at("copy", kGlobalLoad).lanes, 40u);
}
TEST_F(Trace, CopyOfVectors) {
  run("copy_vectors", 4096);  // 32 warps, 512 bytes each
  expect_global("vector", kGlobalLoad, 32, 512, 1);
  expect_global("vector", kGlobalStore, 32, 512, 1);
  EXPECT_EQ(at("vector", kGlobalLoad).access_bytes, 16);
#if !defined( \
    __clang__)  // which takes a vector apart where its members are used: four requests of 4 bytes each
  run("copy_scaled_vectors", 4096);
  expect_global("scaled load", kGlobalLoad, 32, 512, 1);
  expect_global("scaled store", kGlobalStore, 32, 512, 1);
#endif
}
// Four members of a vector in one line are one access of 16 bytes, as nvcc has it.
TEST_F(Trace, VectorsThatTheCompilerTakesApart) {
  run("store_braced", 4096);
  expect_global("braced", kGlobalStore, 32, 512, 1);
  EXPECT_EQ(at("braced", kGlobalStore).access_bytes, 16);
  EXPECT_EQ(at("braced", kGlobalStore).bytes, 16384u);
  expect_totals(1024, 16384, 16384, 32768);
  run("add_members", 0);
  expect_global("members", kGlobalLoad, 2, 33, 1024 / (33. * 32));
  expect_global("members", kGlobalStore, 1, 16, 1);
  run("store_bytes", 0);
  expect_global("bytes", kGlobalStore, 1, 4, 1);
  run("shared_braced", 0);
  expect_shared("shared braced", kSharedStore, 1, 4, 0);
}
// What is four accesses on a GPU stays four: lines of their own, or elements that begin anywhere.
TEST_F(Trace, NeighboursThatAreNoVector) {
  run("store_lines", 0);
  for (const char* line : {"line 0", "line 3"}) expect_global(line, kGlobalStore, 1, 16, 0.25);
  run("stencil", 0);
  EXPECT_EQ(at("stencil", kGlobalLoad).requests, 4u);
}
TEST_F(Trace, CopyWithStride) {
  run("copy_strided", 2);
  expect_global("strided", kGlobalLoad, 1, 8, 0.5);
  run("copy_strided", 8);
  expect_global("strided", kGlobalLoad, 1, 32, 0.125);
  expect_totals(36, 128, 128, 256);
  run("copy_strided", 0);  // all lanes read one word
  expect_global("strided", kGlobalLoad, 1, 1, 0.125);
}
TEST_F(Trace, Transpose) {
  run("transpose_naive", 64);  // 128 warps: rows in, columns out
  expect_global("naive", kGlobalLoad, 128, 512, 1);
  expect_global("naive", kGlobalStore, 128, 4096, 0.125);
  for (const bool padded : {false, true}) {
    run(padded ? "transpose_padded" : "transpose_unpadded", 64);
    expect_global("tile in", kGlobalLoad, 128, 512, 1);
    expect_shared("tile in", kSharedStore, 128, 128, 0);
    expect_shared("tile out", kSharedLoad, 128, padded ? 128 : 128 * 32, padded ? 0 : 128 * 31);
    expect_global("tile out", kGlobalStore, 128, 512, 1);
  }
}
TEST_F(Trace, Matmul) {
  run("matmul_naive", 64);  // 128 warps, 64 steps; rows across a warp: a is a column's walk, b one word
  expect_global("a", kGlobalLoad, 8192, 8192 * 32, 0.125);
  expect_global("b", kGlobalLoad, 8192, 8192, 0.125);
  expect_global("c", kGlobalStore, 128, 4096, 0.125);
  expect_totals(8192 * 33 + 4096, 16384, 16384, 32768);  // a and b are one array
  run("matmul_coalesced", 64);
  expect_global("a", kGlobalLoad, 8192, 8192, 0.125);
  expect_global("b", kGlobalLoad, 8192, 8192 * 4, 1);
  expect_global("c", kGlobalStore, 128, 512, 1);
}
TEST_F(Trace, BankConflicts) {
  const auto expect = [&](const std::string& kernel, int distinct, int stride, std::uint64_t wavefronts,
                          std::uint64_t conflicts = 0) {
    run(kernel, 100 * distinct + stride);
    expect_shared("walk in", kSharedStore, 1, wavefronts, conflicts);
    expect_shared("walk out", kSharedLoad, 1, wavefronts, conflicts);
  };
  // Cycles that such loads take on an H100, but those with a stride above 2.
  expect("walk4", 1, 1, 1);
  expect("walk4", 32, 1, 1);
  expect("walk4", 32, 2, 2, 1);
  expect("walk4", 32, 3, 1);
  expect("walk4", 32, 32, 32, 31);
  expect("walk4", 32, 33, 1);
  expect("walk8", 1, 1, 1);
  expect("walk8", 2, 1, 1);
  expect("walk8", 8, 1, 2);
  expect("walk8", 16, 1, 2);
  expect("walk8", 32, 1, 2);
  expect("walk8", 16, 2, 4, 2);
  expect("walk8", 32, 2, 4, 2);
  expect("walk8", 32, 16, 32, 30);
  expect("walk16", 1, 1, 2);
  expect("walk16", 2, 1, 2);
  expect("walk16", 4, 1, 4);
  expect("walk16", 8, 1, 4);
  expect("walk16", 32, 1, 4);
  expect("walk16", 8, 2, 8, 4);
  expect("walk16", 32, 2, 8, 4);
  expect("walk16", 32, 8, 32, 28);
}
TEST_F(Trace, Atomics) {
  run("count", 0);  // 4 warps on 8 words
  expect_global("atomic", kAtomic, 4, 4, 1);
  EXPECT_EQ(at("atomic", kAtomic).lanes, 128u);
  expect_totals(4, 32, 32, 32);
}

}  // namespace
}  // namespace rooftile::emulated::test
