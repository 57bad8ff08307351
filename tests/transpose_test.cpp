// What the cases of rooftile/ops/transpose cannot say: every dtype bit by bit, every rank, any strides on
// both sides, distances beyond 2^31 elements, and the sentences.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstring>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "rooftile/harness/guarded_memory.h"
#include "rooftile/ops/transpose/transpose.h"
#include "tests/random_views.h"

namespace rooftile {
namespace {

constexpr std::int64_t kNever = std::int64_t{1} << 62;
constexpr DType kWhole[] = {DType::f64,    DType::f32, DType::tf32, DType::f16, DType::bf16, DType::f8e4m3,
                            DType::f8e5m2, DType::i64, DType::i32,  DType::i8,  DType::u8,   DType::boolean};

Queue queue_of(int threads, bool streaming, const char* isa = nullptr) {
  CpuOptions options;
  options.threads = threads;
  options.isa = isa;
  options.streaming_bytes = streaming ? 0 : kNever;
  return Queue::cpu(options);
}

/// Every queue whose kernels differ: of each instruction set that is built and runs here, through the caches
/// and past them; and the emulated device, where this build has one.
std::vector<Queue> queues() {
  std::vector<Queue> all;
  for (const char* isa : {"baseline", "avx2", "avx512"})
    for (const bool streaming : {false, true})
      if (Queue queue = queue_of(2, streaming, isa); queue.status()) all.push_back(queue);
  if (ROOFTILE_TEST_EMULATED) all.push_back(Queue::emulated({.threads = 2}));
  return all;
}

std::vector<std::uint8_t> random_bytes(std::size_t count) {
  std::mt19937 random(1);
  std::vector<std::uint8_t> bytes(count);
  for (auto& b : bytes) b = static_cast<std::uint8_t>(random());
  return bytes;
}

View exchanged(View v) {
  std::swap(v.shape[v.rank - 1], v.shape[v.rank - 2]);
  std::swap(v.stride[v.rank - 1], v.stride[v.rank - 2]);
  return v;
}

View dense(DType type, const std::vector<std::int64_t>& shape) {
  View v;
  v.dtype = type;
  v.rank = static_cast<int>(shape.size());
  std::int64_t stride = 1;
  for (int d = v.rank - 1; d >= 0; --d) {
    v.shape[d] = shape[static_cast<std::size_t>(d)];
    v.stride[d] = stride;
    stride *= v.shape[d];
  }
  return v;
}

/// Transposes between two views, of x in the middle of `source` and y in the middle of as much memory, and
/// compares all of it with what element by element gives.
void expect_transposed(const Queue& queue, View x, View y, const std::vector<std::uint8_t>& source,
                       const std::string& which) {
  const std::size_t width = static_cast<std::size_t>(bits(x.dtype)) / 8, middle = source.size() / 2;
  std::vector<std::uint8_t> target(source.size(), 0xA5), right = target;
  const std::uint8_t* from = source.data() + middle;
  const std::int64_t room = static_cast<std::int64_t>(middle / width);
  const auto xs = offsets_of(x), ys = offsets_of(exchanged(y));  // both in x's order
  ASSERT_EQ(xs.size(), ys.size());
  for (const auto* places : {&xs, &ys})
    for (const std::int64_t at : *places) ASSERT_TRUE(at >= -room && at < room) << which;
  for (std::size_t k = 0; k < xs.size(); ++k)
    std::memcpy(right.data() + static_cast<std::int64_t>(middle) + ys[k] * static_cast<std::int64_t>(width),
                from + xs[k] * static_cast<std::int64_t>(width), width);
  x.data = from;
  y.data = target.data() + middle;
  const Status s = transpose(queue, x, y);
  ASSERT_TRUE(s) << which << ": " << s.message();
  ASSERT_TRUE(target == right) << which << ", " << name(x.dtype) << " on " << queue.isa();
}

TEST(Transpose, MovesEveryBitOfEveryDtype) {
  const auto source = random_bytes(200000);
  for (const Queue& queue : queues())
    for (const DType type : kWhole)
      for (const auto& shape : std::vector<std::vector<std::int64_t>>{
               {0, 5}, {5, 0}, {1, 1}, {1, 9}, {9, 1}, {2, 3}, {64, 64}, {65, 67}, {80, 48}, {3, 17, 33}}) {
        std::vector<std::int64_t> turned = shape;
        std::swap(turned[turned.size() - 1], turned[turned.size() - 2]);
        expect_transposed(queue, dense(type, shape), dense(type, turned), source, "dense");
      }
}

TEST(Transpose, EveryRank) {
  const auto source = random_bytes(500000);
  for (const Queue& queue : queues()) {
    std::vector<std::int64_t> shape = {19, 21};
    for (int rank = 2; rank <= kMaxRank; ++rank) {
      std::vector<std::int64_t> turned = shape;
      std::swap(turned[turned.size() - 1], turned[turned.size() - 2]);
      expect_transposed(queue, dense(DType::bf16, shape), dense(DType::bf16, turned), source,
                        "rank " + std::to_string(rank));
      shape.insert(shape.begin(), rank % 2 ? 3 : 2);
    }
  }
}

/// Layouts as they come, and strides at random: what y may not have is refused, all else is right.
TEST(Transpose, AnyStridesOnBothSides) {
  const auto source = random_bytes(400000);
  const std::vector<DType> widths = {DType::u8, DType::bf16, DType::f32, DType::f64};
  for (const Queue& queue : queues()) {
    RandomViews random(7);
    int taken = 0;
    for (int turn = 0; turn < 600; ++turn) {
      auto shape = random.shape(static_cast<int>(random.number(2, 6)));
      if (turn % 3 == 0) shape = {random.number(1, 2), random.number(1, 40), random.number(1, 40)};
      View x = random.view_of(shape), y = random.view_of(shape);
      y = exchanged(y);
      x.dtype = y.dtype = random.one_of(widths);
      y.data = source.data();
      const auto places = offsets_of(y);
      if (std::set<std::int64_t>(places.begin(), places.end()).size() < places.size()) continue;
      expect_transposed(queue, x, y, source, "turn " + std::to_string(turn));
      if (HasFatalFailure()) return;
      ++taken;
    }
    EXPECT_GT(taken, 200);
  }
}

/// x and y in one buffer, element beside element: they share none, so nothing is refused.
TEST(Transpose, XAndYMayInterleave) {
  for (const Queue& queue : queues()) {
    std::vector<float> both(2 * 40 * 50);
    for (std::size_t k = 0; k < both.size(); ++k) both[k] = static_cast<float>(k);
    const Status s = transpose(queue, view(static_cast<const float*>(both.data()), {40, 50}, {100, 2}),
                               view(both.data() + 1, {50, 40}, {80, 2}));
    ASSERT_TRUE(s) << s.message();
    for (std::size_t i = 0; i < 40; ++i)
      for (std::size_t j = 0; j < 50; ++j) ASSERT_EQ(both[1 + 80 * j + 2 * i], both[100 * i + 2 * j]);
  }
}

/// Memory of the system's: pages that are never touched cost nothing.
struct Pages {
  explicit Pages(std::size_t size) : bytes(size) {
    p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  }
  ~Pages() {
    if (p != MAP_FAILED) munmap(p, bytes);
  }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;
  std::size_t bytes;
  void* p;
};

TEST(Transpose, RowsBeyondThirtyTwoBitsApart) {
  constexpr std::int64_t kApart = (std::int64_t{1} << 32) + 8, kM = 300, kN = 70;  // several tiles each way
  const Pages x_pages(static_cast<std::size_t>(kM * kApart)), y_pages(static_cast<std::size_t>(kN * kApart));
  if (x_pages.p == MAP_FAILED || y_pages.p == MAP_FAILED) GTEST_SKIP() << "the system gave no address space";
  auto* x = static_cast<std::uint8_t*>(x_pages.p);
  auto* y = static_cast<std::uint8_t*>(y_pages.p);
  for (std::int64_t i = 0; i < kM; ++i)
    for (std::int64_t j = 0; j < kN; ++j) x[i * kApart + j] = static_cast<std::uint8_t>(i * 37 + j);
  for (const Queue& queue : queues()) {
    for (std::int64_t j = 0; j < kN; ++j) std::memset(y + j * kApart, 0xA5, kM);
    const Status s = transpose(queue, view(static_cast<const std::uint8_t*>(x), {kM, kN}, {kApart, 1}),
                               view(y, {kN, kM}, {kApart, 1}));
    ASSERT_TRUE(s) << s.message();
    for (std::int64_t i = 0; i < kM; ++i)
      for (std::int64_t j = 0; j < kN; ++j)
        ASSERT_EQ(y[j * kApart + i], x[i * kApart + j]) << i << ", " << j << " on " << queue.isa();
  }
}

TEST(Transpose, RefusalsNameWhatTheySaw) {
  const Queue queue = queue_of(1, false);
  std::vector<float> x(64), y(64);
  std::vector<double> wide(64);
  std::vector<u4x2> packed(64);
  const auto sentence = [&](ConstView from, View to, const char* variant = nullptr) {
    return std::string(transpose(queue, from, to, {variant}).message());
  };
  EXPECT_EQ(sentence(view(x.data(), {4, 3}), view(y.data(), {4, 3})),
            "transpose: y is 4x3 f32, must be 3x4 where x is 4x3 f32");
  EXPECT_EQ(sentence(view(x.data(), {2, 4, 3}), view(y.data(), {3, 4, 2})),
            "transpose: y is 3x4x2 f32, must be 2x3x4 where x is 2x4x3 f32");
  EXPECT_EQ(sentence(view(x.data(), {1, 4, 3}), view(y.data(), {3, 4})),
            "transpose: y is 3x4 f32, must be 1x3x4 where x is 1x4x3 f32");
  EXPECT_EQ(sentence(view(x.data(), {4}), view(y.data(), {4})),
            "transpose: x is 4 f32, needs at least 2 dimensions");
  EXPECT_EQ(sentence(view(packed.data(), {4, 4}), view(packed.data() + 32, {4, 4})),
            "transpose: x is 4x4 u4, must be one of f64, f32, tf32, f16, bf16, f8e4m3, f8e5m2, i64, i32, i8, "
            "u8, bool");
  EXPECT_EQ(sentence(view(x.data(), {4, 3}), view(packed.data(), {3, 4})),
            "transpose: y is 3x4 u4, must be one of f64, f32, tf32, f16, bf16, f8e4m3, f8e5m2, i64, i32, i8, "
            "u8, bool");
  EXPECT_EQ(sentence(view(x.data(), {4, 3}), view(wide.data(), {3, 4})),
            "transpose: y is 3x4 f64, must be f32 as x is");
  EXPECT_EQ(sentence({}, view(y.data(), {3, 4})), "transpose: x is absent");
  EXPECT_EQ(sentence(view(x.data(), {4, 3}), {}), "transpose: y is absent");
  EXPECT_EQ(
      sentence(view(x.data(), {4, 3}), view(y.data(), {3, 4}, {0, 1})),
      "transpose: output y is 3x4 f32 (strides 0, 1): its strides place several elements at one address");
  // In place, square or not, and by an element.
  for (const View& y_in_x :
       {view(x.data(), {4, 4}), view(x.data(), {4, 4}, {1, 4}), view(x.data() + 1, {4, 4})})
    EXPECT_NE(sentence(view(x.data(), {4, 4}), y_in_x).find("must lie apart"), std::string::npos);
  EXPECT_EQ(sentence(view(wide.data(), {4, 3}), view(wide.data() + 32, {3, 4}), "01_scalar"),
            "transpose: the ladder's rungs take elements of 32 bits, x is f64");
  EXPECT_EQ(sentence(view(x.data(), {2, 4, 3}), view(y.data(), {2, 3, 4}), "01_scalar"),
            "transpose: the ladder's rungs take one matrix, in x and y row by row without gaps; these are 2 "
            "matrices of 4x3, or there are gaps");
  EXPECT_NE(sentence(view(x.data(), {4, 3}), view(y.data(), {3, 4}), "05_vectorised")
                .find("rows and columns must be multiples of 4"),
            std::string::npos);
  EXPECT_NE(sentence(view(x.data(), {4, 4}), view(y.data(), {4, 4}), "06_magic").find("no variant"),
            std::string::npos);
}

TEST(Permute, OneElementOfNoDimension) {
  const double x = 3;
  double y = 0;
  ASSERT_TRUE(permute(queue_of(1, false), permuted(scalar_view(&x), nullptr, 0), scalar_view(&y)));
  EXPECT_EQ(y, 3);
}

TEST(Permute, RefusesAnOrderThatIsNone) {
  const Queue queue = queue_of(1, false);
  std::vector<float> x(24), y(24);
  const auto sentence = [&](ConstView seen) {
    return std::string(permute(queue, seen, view(y.data(), {2, 3, 4})).message());
  };
  const ConstView x3 = view(std::as_const(x).data(), {4, 3, 2});
  EXPECT_EQ(sentence(permuted(x3, {2, 1, 0})), "");
  EXPECT_EQ(sentence(permuted(x3, {-1, -2, -3})), "");
  EXPECT_EQ(sentence(permuted(x3, {1, 0})),
            "permute: x is permuted by 2 dimensions and has 3, name each once");
  EXPECT_EQ(sentence(permuted(x3, {0, 1, 3})), "permute: x is permuted by dimension 3, must be from -3 to 2");
  EXPECT_EQ(sentence(permuted(x3, {0, 1, -2})),
            "permute: x is permuted by dimension -2 twice, name each of its 3 once");
}

TEST(Permute, ConcatenatesPicturesInOneTensor) {
  const Queue queue = Queue::cpu();
  std::vector<std::uint8_t> rgb(2 * 5 * 7 * 3), alpha(2 * 5 * 7, 255), y(2 * 4 * 5 * 7);
  for (std::size_t i = 0; i < rgb.size(); ++i) rgb[i] = static_cast<std::uint8_t>(i);
  Status s;
  // [concat]
  // y: 2 pictures of 4 planes of 5x7. A slice of it has y's strides.
  const View planes = view(y.data(), {2, 3, 5, 7}, {4 * 35, 35, 7, 1});
  const View last = view(y.data() + 3 * 35, {2, 5, 7}, {4 * 35, 7, 1});
  s = permute(queue, permuted(view(rgb.data(), {2, 5, 7, 3}), {0, 3, 1, 2}), planes);  // NHWC to NCHW
  if (s) s = permute(queue, view(alpha.data(), {2, 5, 7}), last);
  // [/concat]
  ASSERT_TRUE(s) << s.message();
  for (std::size_t n = 0; n < 2; ++n)
    for (std::size_t c = 0; c < 4; ++c)
      for (std::size_t i = 0; i < 35; ++i)
        ASSERT_EQ(y[(n * 4 + c) * 35 + i], c == 3 ? 255 : rgb[(n * 35 + i) * 3 + c]);
}

/// Channels in another order, or some of them, of pictures whose rows may have gaps: as pixels and as planes,
/// for each width of an element. x begins or ends where no byte may be read, and nothing beside y is written.
TEST(Permute, ChannelsInAnotherOrderOrFewer) {
  for (const Queue& queue : queues())
    for (const std::int64_t height : {1, 3})
      for (const std::int64_t width : {1, 5, 16, 17, 70, 4100})
        for (const std::int64_t pixel : {2, 3, 4, 5})
          for (std::int64_t channels = 2; channels <= pixel; ++channels)
            for (const int variant : {0, 1, 2, 3, 4, 5, 6, 7}) {
              const bool backwards = variant & 1, planes = variant & 2, wide = variant & 4;
              const std::int64_t size = wide ? 4 : 1, gap = height > 1 ? 7 : 0, row = width * pixel + gap;
              const DType type = wide ? DType::f32 : DType::u8;
              const std::int64_t last = (height - 1) * row + (width - 1) * pixel + channels;
              const auto bytes = static_cast<std::size_t>(last * size);
              harness::GuardedMemory memory(bytes);
              for (const bool ends : {false, true}) {
                auto* const begin =
                    reinterpret_cast<std::uint8_t*>(memory.data() + (ends ? memory.size() - bytes : 0));
                for (std::size_t i = 0; i < bytes; ++i)
                  begin[i] = static_cast<std::uint8_t>(i * 37 + i / 251);
                View x = view(begin, {height, width, channels});
                x.dtype = type;
                x.stride[0] = row, x.stride[1] = pixel, x.stride[2] = backwards ? -1 : 1;
                if (backwards) x.data = begin + (channels - 1) * size;
                const auto count = static_cast<std::size_t>(height * width * channels * size);
                std::vector<std::uint8_t> y(count + 128, 0xA5), right = y;
                View to = planes ? view(y.data() + 64, {channels, height, width})
                                 : view(y.data() + 64, {height, width, channels});
                to.dtype = type;
                for (std::int64_t i = 0; i < height; ++i)
                  for (std::int64_t j = 0; j < width; ++j)
                    for (std::int64_t c = 0; c < channels; ++c) {
                      const std::int64_t at = planes ? (c * height + i) * width + j
                                                     : (i * width + j) * channels + c,
                                         from = i * row + j * pixel + (backwards ? channels - 1 - c : c);
                      std::memcpy(right.data() + 64 + at * size, begin + from * size,
                                  static_cast<std::size_t>(size));
                    }
                const Status s = permute(queue, planes ? permuted(x, {2, 0, 1}) : x, to);
                ASSERT_TRUE(s) << s.message();
                ASSERT_EQ(y, right) << height << "x" << width << ", " << channels << " of " << pixel
                                    << " channels, way " << variant << (ends ? ", at the end" : "");
              }
            }
}

TEST(Transpose, TheGpuRungsTakeWhatAGridHolds) {
  const Queue queue = queue_of(1, false);
  const Pages pages(std::size_t{1} << 25);
  ASSERT_NE(pages.p, MAP_FAILED);
  const auto* x = static_cast<const float*>(pages.p);
  auto* y = static_cast<float*>(pages.p) + (std::size_t{1} << 22);
  EXPECT_EQ(
      std::string(transpose(queue, view(x, {65535 * 32 + 1, 1}), view(y, {1, 65535 * 32 + 1}), {"01_naive"})
                      .message()),
      "transpose: this rung takes at most 2097120 rows and columns, x is 2097121x1");
}

}  // namespace
}  // namespace rooftile
