// What the library's own GPU kernels ask of memory, exactly.
#include "rooftile/harness/course/trace.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

namespace rooftile::harness {
namespace {

class LibraryTrace : public testing::Test {
 protected:
  void SetUp() override {
    if (!ROOFTILE_TEST_CHECKED) GTEST_SKIP() << "this build has no checked emulated device";
  }
  static Trace of(const char* function, const Shape& shape, DType dtype, bool in_place = false) {
    EmulatedOptions options;
    options.threads = 1;
    options.checked = true;
    Case c;
    c.shape = shape;
    c.dtype = dtype;
    c.in_place = in_place;
    return trace(Queue::emulated(options), *find_spec(function), c, "tile", {ROOFTILE_SOURCE_DIR});
  }
};

// The last rung of each ladder asks for what the op's cases state, and for nothing twice.
TEST_F(LibraryTrace, OfTheTileKernelsIsWhatTheirCasesState) {
  const struct {
    const char* function;
    Shape shape;
    DType dtype;
  } kernels[] = {{"copy", {65536}, DType::f32},        {"copy", {65536}, DType::u8},
                 {"add", {65536}, DType::f32},         {"add", {65536}, DType::bf16},
                 {"axpby", {65536}, DType::f32},       {"softmax", {64, 1024}, DType::f32},
                 {"softmax", {16, 4096}, DType::bf16}, {"softmax_backward", {64, 1024}, DType::f32}};
  for (const auto& k : kernels) {
    const Trace trace = of(k.function, k.shape, k.dtype);
    EXPECT_EQ(trace.moved_bytes(), trace.stated_bytes) << k.function << " " << name(k.dtype);
    EXPECT_EQ(double(trace.totals.read_bytes + trace.totals.written_bytes), trace.stated_bytes) << k.function;
    EXPECT_EQ(trace.totals.launches, 1u) << k.function;
    EXPECT_EQ(trace.finding, "") << k.function;
    EXPECT_EQ(trace.variant, "tile");
  }
}
// Others ask a cache for some bytes again; each byte is needed once all the same.
TEST_F(LibraryTrace, TouchesEachByteThatIsStated) {
  for (const auto& [function, shape, dtype] : {std::tuple{"rgb_to_gray", Shape{256, 256}, DType::u8},
                                               std::tuple{"layer_norm", Shape{64, 1024}, DType::f32}}) {
    const Trace trace = of(function, shape, dtype);
    EXPECT_EQ(double(trace.totals.read_bytes + trace.totals.written_bytes), trace.stated_bytes) << function;
    EXPECT_GT(trace.moved_bytes(), trace.stated_bytes) << function;
  }
}
TEST_F(LibraryTrace, CountsBytesThatAreReadAndWrittenOnce) {
  for (const bool in_place : {false, true}) {
    const emulated::TraceTotals totals = of("softmax", {64, 1024}, DType::f32, in_place).totals;
    EXPECT_EQ(totals.read_bytes, 64u * 1024 * 4);
    EXPECT_EQ(totals.written_bytes, 64u * 1024 * 4);
    EXPECT_EQ(totals.different_bytes, (in_place ? 1u : 2u) * 64 * 1024 * 4);
  }
}
// 65536 elements: 4 bytes each, a warp's request 512.
TEST_F(LibraryTrace, TellsTheLinesOfTheKernel) {
  const Trace trace = of("add", {65536}, DType::f32);
  std::map<std::string, int> lines;
  for (const TracedLine& l : trace.lines) {
    EXPECT_EQ(l.file, "rooftile/ops/blas1/blas1.tile.h");
    EXPECT_NE(l.text, "") << l.file << ":" << l.counts.line;
    EXPECT_EQ(l.counts.requests, 512u) << l.text;
    EXPECT_EQ(l.counts.sectors, 8192u) << l.text;
    EXPECT_EQ(l.counts.used_share(), 1) << l.text;
    EXPECT_EQ(l.counts.access_bytes, 16) << l.text;
    ++lines[access_name(l.counts.kind)];
  }
  EXPECT_EQ(lines, (std::map<std::string, int>{{"global load", 2}, {"global store", 1}}));
}
// A thread reads both words that its elements lie in, and so most words twice; each is written once.
TEST_F(LibraryTrace, OfUnalignedRowsIsHalfAsMuchAgain) {
  const Trace trace = of("softmax", {8, 1001}, DType::f32);
  EXPECT_EQ(double(trace.totals.written_bytes), 8 * 1001 * 4.);
  EXPECT_GT(trace.moved_bytes(), trace.stated_bytes);
  EXPECT_LT(trace.moved_bytes(), 1.6 * trace.stated_bytes);
}
TEST_F(LibraryTrace, RefusesWithASentence) {
  const auto sentence = [](auto&& call) -> std::string {
    try {
      call();
    } catch (const std::exception& e) {
      return e.what();
    }
    return "";
  };
  EXPECT_NE(sentence([] { of("softmax", {2, 3}, DType::f64); }).find("f64"), std::string::npos);
  const Spec& spec = *find_spec("copy");
  const Case c = spec.bench().cache.front();
  EXPECT_NE(sentence([&] { trace(Queue::emulated(), spec, c, "", {}); }).find("the checked one does"),
            std::string::npos);
  EXPECT_NE(sentence([&] { trace(Queue::cpu(), spec, c, "", {}); }).find("emulated device"),
            std::string::npos);
}

}  // namespace
}  // namespace rooftile::harness
