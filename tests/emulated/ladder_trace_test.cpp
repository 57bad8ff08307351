// What the lessons of blas1 and image say of their GPU rungs' traffic, exactly.
#include <gtest/gtest.h>

#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

#include "rooftile/backend/emulated/trace.h"
#include "rooftile/ops/blas1/ladder/ladder.h"
#include "rooftile/ops/image/ladder/ladder.h"

namespace rooftile::ladder {
namespace {

using emulated::TraceKind;
using emulated::TraceLine;
using enum TraceKind;

class Ladder : public testing::Test {
 protected:
  struct alignas(128) Line {
    std::byte bytes[128];
  };
  template <class T>
  T* memory(std::size_t count) {
    lines_.emplace_back((count * sizeof(T) + 127) / 128);
    return reinterpret_cast<T*>(lines_.back().data());
  }
  CudaLaunch where() {
    CudaLaunch launch{};
    launch.architecture = 90;
    launch.multiprocessors = 2;
    launch.threads = 1;
    launch.scratch = memory<std::byte>(kCudaScratchBytes);
    return launch;
  }
  template <class Problem>
  void trace(Status (*rung)(const CudaLaunch&, const Problem&), const Problem& problem) {
    const CudaLaunch launch = where();
    emulated::start_trace();
    const Status s = rung(launch, problem);
    trace_ = emulated::stop_trace();
    ASSERT_TRUE(s.ok()) << s.message();
  }
  /// The trace of the line of rooftile/ops/<file> that holds `text`.
  TraceLine at(const std::string& file, const std::string& text, TraceKind kind) {
    std::ifstream source(ROOFTILE_SOURCE_DIR "/rooftile/ops/" + file);
    std::string line;
    int number = 1;
    while (std::getline(source, line) && line.find(text) == std::string::npos) ++number;
    for (const TraceLine& t : trace_)
      if (t.line == number && t.kind == kind && std::string(t.file).ends_with(file)) return t;
    std::string all;
    for (const TraceLine& t : trace_)
      all += std::string(t.file) + ":" + std::to_string(t.line) + " " + name(t.kind) + "\n";
    ADD_FAILURE() << "no " << name(kind) << " in " << file << ":" << number << " (" << text
                  << "); there are\n"
                  << all;
    return {};
  }
  static void expect_global(const TraceLine& t, std::uint64_t requests, double sectors, double used) {
    EXPECT_EQ(t.requests, requests);
    EXPECT_DOUBLE_EQ(t.sectors_per_request(), sectors);
    EXPECT_DOUBLE_EQ(t.used_share(), used);
  }
  static void expect_shared(const TraceLine& t, std::uint64_t requests, double wavefronts) {
    EXPECT_EQ(t.requests, requests);
    EXPECT_DOUBLE_EQ(t.wavefronts_per_request(), wavefronts);
  }
  /// Bytes that global loads or stores move, all lines together.
  std::uint64_t moved(TraceKind kind) const {
    std::uint64_t bytes = 0;
    for (const TraceLine& t : trace_)
      if (t.kind == kind) bytes += 32 * t.sectors;
    return bytes;
  }

 private:
  std::vector<std::vector<Line>> lines_;
  std::vector<TraceLine> trace_;
};

class Add : public Ladder {
 protected:
  static constexpr std::int64_t kSize = 65536;
  AddProblem problem() {
    AddProblem p{};
    p.rows.columns = kSize;
    for (std::int64_t& stride : p.rows.column_stride) stride = 1;
    p.x = memory<float>(kSize);
    p.y = memory<float>(kSize);
    p.z = memory<float>(kSize);
    p.dtype = DType::f32;
    return p;
  }
};

TEST_F(Add, OneElementMovesNeighbours) {
  trace(launch_add_one_element, problem());
  const auto file = "blas1/ladder/add/01_one_element.cu";
  expect_global(at(file, "z[i] = x[i] + y[i]", kGlobalLoad), 2 * kSize / 32, 4, 1);
  expect_global(at(file, "z[i] = x[i] + y[i]", kGlobalStore), kSize / 32, 4, 1);
  EXPECT_EQ(moved(kGlobalLoad), 8 * kSize);
  EXPECT_EQ(moved(kGlobalStore), 4 * kSize);
}
TEST_F(Add, GridStrideAsksForTheSame) {
  trace(launch_add_grid_stride, problem());
  const auto file = "blas1/ladder/add/02_grid_stride.cu";
  expect_global(at(file, "z[i] = x[i] + y[i]", kGlobalLoad), 2 * kSize / 32, 4, 1);
  expect_global(at(file, "z[i] = x[i] + y[i]", kGlobalStore), kSize / 32, 4, 1);
}
TEST_F(Add, ACountBeyond2To31IsCounted) {
  AddProblem p = problem();
  p.rows.columns = (std::int64_t{1} << 31) * 256;  // one block more than a grid has
  const Status s = launch_add_one_element(where(), p);
  EXPECT_STREQ(s.message(), "add: 01_one_element takes up to 549755813632 elements, these are 549755813888");
}

class Dot : public Ladder {
 protected:
  static constexpr std::int64_t kSize = 262144;  // 16 elements in each of 01_thread_sums' shares
  DotProblem problem() {
    DotProblem p{};
    p.rows.columns = kSize;
    for (std::int64_t& stride : p.rows.column_stride) stride = 1;
    p.data[0] = memory<float>(kSize);
    p.data[1] = memory<float>(kSize);
    p.result = memory<float>(1);
    p.dtype = p.result_dtype = DType::f32;
    return p;
  }
};

TEST_F(Dot, ThreadSumsTouchASectorForEachLane) {
  trace(launch_dot_thread_sums, problem());
  const auto file = "blas1/ladder/dot/01_thread_sums.cu";
  expect_global(at(file, "sum += x[i] * y[i]", kGlobalLoad), 2 * kSize / 32, 32, 0.125);
  expect_global(at(file, "sums[thread] = sum", kGlobalStore), 16384 / 32, 4, 1);
  // One thread adds the sums, four bytes of a sector at a time.
  expect_global(at("blas1/ladder/dot/dot_gpu.h", "sum += sums[i]", kGlobalLoad), 16384, 1, 0.125);
}
TEST_F(Dot, NeighboursTouchFour) {
  trace(launch_dot_neighbours, problem());
  expect_global(at("blas1/ladder/dot/02_neighbours.cu", "sum += x[i] * y[i]", kGlobalLoad), 2 * kSize / 32, 4,
                1);
}
TEST_F(Dot, SharedMemoryHasNoConflicts) {
  trace(launch_dot_shared_memory, problem());
  const auto file = "blas1/ladder/dot/03_shared_memory.cu";
  expect_global(at(file, "sum += x[i] * y[i]", kGlobalLoad), 2 * kSize / 32, 4, 1);
  expect_shared(at(file, "part[thread] = sum", kSharedStore), kSize / 32, 1);
  // 4, 2 and 1 warps add, then parts of one: 12 requests for each of the 1024 blocks.
  expect_shared(at(file, "part[thread] += part[thread + half]", kSharedStore), 12 * 1024, 1);
  expect_global(at("blas1/ladder/dot/dot_gpu.h", "sum += sums[i]", kGlobalLoad), 1024, 1, 0.125);
}
TEST_F(Dot, ShufflesLeaveEightSumsForSharedMemory) {
  trace(launch_dot_shuffles, problem());
  const auto file = "blas1/ladder/dot/dot_gpu.h";
  expect_shared(at(file, "warps[warp] = sum", kSharedStore), 8 * 1024, 1);
  expect_shared(at(file, "lane < kWarps ? warps[lane]", kSharedLoad), 1024, 1);
}

class Gray : public Ladder {
 protected:
  static constexpr std::int64_t kPixels = 16384;
  GrayProblem problem() {
    GrayProblem p{};
    p.rows.columns = kPixels;
    p.rows.column_stride[0] = 1;
    p.rows.column_stride[1] = 3;
    p.rgb = memory<std::uint8_t>(3 * kPixels);
    p.gray = memory<std::uint8_t>(kPixels);
    p.channel = 1;
    p.weight[0] = 299, p.weight[1] = 587, p.weight[2] = 114;
    return p;
  }
};

TEST_F(Gray, OnePixelAsksThreeTimesForTheSameBytes) {
  for (const bool fixed : {false, true}) {
    const std::string file = fixed ? "image/ladder/02_fixed_point.cu" : "image/ladder/01_one_pixel.cu";
    trace(fixed ? launch_gray_fixed_point : launch_gray_one_pixel, problem());
    for (const char* channel : {"= pixel[0]", "= pixel[1]", "= pixel[2]"})
      expect_global(at(file, channel, kGlobalLoad), kPixels / 32, 3, 1. / 3);
    expect_global(at(file, "gray[i] =", kGlobalStore), kPixels / 32, 1, 1);
    EXPECT_EQ(moved(kGlobalLoad), 9 * kPixels);
  }
}
TEST_F(Gray, WordsAskAQuarterAsOften) {
  trace(launch_gray_words, problem());
  const auto file = "image/ladder/03_words.cu";
  for (const char* word : {"= words[0]", "= words[1]", "= words[2]"})
    expect_global(at(file, word, kGlobalLoad), kPixels / 128, 12, 1. / 3);
  expect_global(at(file, "(gray)[group] =", kGlobalStore), kPixels / 128, 4, 1);
  EXPECT_EQ(moved(kGlobalLoad), 9 * kPixels);
}
TEST_F(Gray, SharedMemoryReadsEachSectorOnce) {
  trace(launch_gray_shared_memory, problem());
  const auto file = "image/ladder/04_shared_memory.cu";
  expect_global(at(file, "words[word] = from[word]", kGlobalLoad), 3 * kPixels / 128, 4, 1);
  expect_shared(at(file, "words[word] = from[word]", kSharedStore), 3 * kPixels / 128, 1);
  for (const char* word : {"= words[3 * thread]", "= words[3 * thread + 1]", "= words[3 * thread + 2]"})
    expect_shared(at(file, word, kSharedLoad), kPixels / 128, 1);
  expect_global(at(file, "(gray)[thread] =", kGlobalStore), kPixels / 128, 4, 1);
  EXPECT_EQ(moved(kGlobalLoad), 3 * kPixels);
}

#if !defined(__clang__)  // which takes a vector apart where its members are used: four requests of 4 bytes
TEST_F(Add, VectorLoadsMoveSixteenSectorsARequest) {
  for (const bool many : {false, true}) {
    trace(many ? launch_add_in_flight : launch_add_vector_loads, problem());
    const std::string file =
        many ? "blas1/ladder/add/04_in_flight.cu" : "blas1/ladder/add/03_vector_loads.cu";
    for (const char* load : {many ? "a[k] = x4[" : "a = x4[i]", many ? "b[k] = y4[" : "b = y4[i]"})
      expect_global(at(file, load, kGlobalLoad), kSize / 128, 16, 1);
    expect_global(at(file, many ? "z4[i + k * step]" : "z4[i] =", kGlobalStore), kSize / 128, 16, 1);
    EXPECT_EQ(moved(kGlobalLoad), 8 * kSize);
  }
}
TEST_F(Dot, VectorLoadsMoveSixteenSectorsARequest) {
  const auto file = "blas1/ladder/dot/dot_gpu.h";
  trace(launch_dot_vector_loads, problem());  // one word a thread: the loop of four has nothing to do
  expect_global(at(file, "a = x4[i], b = y4[i]", kGlobalLoad), 2 * kSize / 128, 16, 1);
  trace(launch_dot_two_passes, problem());  // 16 chunks of 16 words a thread
  for (const char* load : {"a[k] = x4[", "b[k] = y4["})
    expect_global(at(file, load, kGlobalLoad), kSize / 128, 16, 1);
}
TEST_F(Gray, SixteenPixelsMoveSixteenSectorsARequest) {
  trace(launch_gray_sixteen_pixels, problem());
  const auto file = "image/ladder/05_sixteen_pixels.cu";
  expect_global(at(file, "words[word] = from[word]", kGlobalLoad), 3 * kPixels / 512, 16, 1);
  expect_shared(at(file, "words[word] = from[word]", kSharedStore), 3 * kPixels / 512, 4);
  for (const char* word : {"= words[3 * thread]", "= words[3 * thread + 1]", "= words[3 * thread + 2]"})
    expect_shared(at(file, word, kSharedLoad), kPixels / 512, 4);
  EXPECT_EQ(moved(kGlobalLoad), 3 * kPixels);
}
#endif

}  // namespace
}  // namespace rooftile::ladder
