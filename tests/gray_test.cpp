// rgb_to_gray beyond what its cases can say: every colour there is, the layouts of real pictures, the pages
// beside a picture, the refusals.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "rooftile/ops/image/image.h"

namespace rooftile {
namespace {

using Bytes = std::vector<std::uint8_t>;

int expected(int red, int green, int blue, GrayWeights weights) {
  if (weights == GrayWeights::luminosity) return (21 * red + 72 * green + 7 * blue + 50) / 100;
  return (299 * red + 587 * green + 114 * blue + 500) / 1000;
}

Queue queue_of(int threads, std::int64_t streaming_bytes, const char* isa = nullptr) {
  CpuOptions options;
  options.threads = threads;
  options.isa = isa;
  options.streaming_bytes = streaming_bytes;
  return Queue::cpu(options);
}

/// The instruction sets that are built here and run on this CPU.
std::vector<const char*> isas() {
  std::vector<const char*> all;
  for (const char* isa : {"baseline", "avx2", "avx512"})
    if (queue_of(1, -1, isa).status()) all.push_back(isa);
  return all;
}

Bytes noise(std::size_t size) {
  std::mt19937 random(7);
  Bytes bytes(size);
  for (auto& b : bytes) b = static_cast<std::uint8_t>(random());
  return bytes;
}

/// Every colour once, red slowest.
const Bytes& all_colours() {
  static const Bytes rgb = [] {
    Bytes all;
    all.reserve(3u << 24);
    for (int colour = 0; colour < 1 << 24; ++colour)
      for (int shift : {16, 8, 0}) all.push_back(static_cast<std::uint8_t>(colour >> shift));
    return all;
  }();
  return rgb;
}

/// What all colours become.
template <class Right>
Bytes picture_of(Right right) {
  Bytes gray;
  gray.reserve(1u << 24);
  for (int colour = 0; colour < 1 << 24; ++colour)
    gray.push_back(static_cast<std::uint8_t>(right(colour >> 16, colour >> 8 & 255, colour & 255)));
  return gray;
}

TEST(Gray, DividesExactly) {
  const auto wrong = [](int add, int factor, int shift) {
    int count = 0;
    for (int sum = 0; sum <= 255000; ++sum)
      count += ((sum + add) >> 3) * factor >> shift != (sum + 500) / 1000;
    return count;
  };
  EXPECT_EQ(wrong(508, 16777, 21), 0);  // image.tile.h
  EXPECT_EQ(wrong(500, 33555, 22), 0);  // ladder/03_vectors.cpp
  EXPECT_GT(wrong(500, 16777, 21), 0);
  EXPECT_GT(wrong(500, 33554, 22), 0);
  EXPECT_GT(wrong(500, 16778, 21), 0);
}

TEST(Gray, EveryColour) {
  ASSERT_FALSE(isas().empty());
  const Bytes& rgb = all_colours();
  Bytes gray(1 << 24);
  for (GrayWeights weights : {GrayWeights::bt601, GrayWeights::luminosity}) {
    const Bytes right = picture_of([&](int r, int g, int b) { return expected(r, g, b, weights); });
    for (const char* isa : isas()) {
      const Queue queue = queue_of(2, -1, isa);
      for (const char* variant :
           {"tile", "05_streaming", "04_pairs", "03_vectors", "02_integers", "01_scalar"}) {
        std::fill(gray.begin(), gray.end(), std::uint8_t{99});
        const Status s = rgb_to_gray(queue, view(rgb.data(), {4096, 4096, 3}),
                                     view(gray.data(), {4096, 4096}), {weights, variant});
        ASSERT_TRUE(s) << s.message();
        EXPECT_TRUE(gray == right) << variant << " on " << isa;
      }
    }
  }
}

/// How a picture lies in memory, in bytes.
struct Lie {
  const char* name;
  std::int64_t first, row, pixel, channel;  // of a picture of height h and width w
  std::int64_t gray_row = 0, gray_pixel = 1;
};

void pictures_on(const char* isa) {
  const Bytes memory = noise(400000);
  for (const auto& [h, w] :
       {std::pair(3, 100), {5, 64}, {1, 1}, {2, 129}, {40, 31}, {2, 9000}, {0, 5}, {5, 0}}) {
    const Lie lies[] = {
        {"packed", 0, 3 * w, 3, 1},
        {"crop", 21, 3 * w + 30, 3, 1},
        {"bgr", 2, 3 * w, 3, -1},
        {"rgba", 0, 4 * w, 4, 1},
        {"rgba crop", 9, 4 * w + 8, 4, 1},
        {"bgra", 2, 4 * w, 4, -1},
        {"abgr", 3, 4 * w, 4, -1},
        {"planes", 0, w, 1, h * w},
        {"upside down", 3 * w * (h > 0 ? h - 1 : 0), -3 * w, 3, 1},
        {"mirrored", 3 * (w > 0 ? w - 1 : 0), 3 * w, -3, 1},
        {"transposed", 0, 3, 3 * h, 1},
        {"gray thrice", 0, w, 1, 0},
        {"one row for all", 0, 0, 3, 1},
        {"every second gray", 0, 3 * w, 3, 1, 2 * w + 1, 2},
    };
    for (const Lie& lie : lies)
      for (std::int64_t streaming : {std::int64_t{1} << 40, std::int64_t{0}})
        for (int offset : {0, 1, 63}) {
          const Queue queue = queue_of(3, streaming, isa);
          const std::int64_t gray_row = lie.gray_row ? lie.gray_row : w + 2;
          Bytes out(static_cast<std::size_t>(h * gray_row + 200), 0xA5);
          const Bytes before = out;
          const std::uint8_t* rgb = memory.data() + 50 + lie.first;
          const Status s = rgb_to_gray(queue, view(rgb, {h, w, 3}, {lie.row, lie.pixel, lie.channel}),
                                       view(out.data() + 64 + offset, {h, w}, {gray_row, lie.gray_pixel}));
          ASSERT_TRUE(s) << lie.name << ": " << s.message();
          Bytes right = before;
          for (int y = 0; y < h; ++y)
            for (int x = 0; x < w; ++x) {
              const std::uint8_t* p = rgb + y * lie.row + x * lie.pixel;
              right[static_cast<std::size_t>(64 + offset + y * gray_row + x * lie.gray_pixel)] =
                  static_cast<std::uint8_t>(
                      expected(p[0], p[lie.channel], p[2 * lie.channel], GrayWeights::bt601));
            }
          ASSERT_TRUE(out == right) << lie.name << ", " << h << "x" << w << ", gray at " << offset;
        }
  }
}

TEST(Gray, PicturesAsTheyCome) {
  for (const char* isa : isas()) {
    SCOPED_TRACE(isa);
    pictures_on(isa);
  }
}

/// Memory between two pages that may not be touched.
class Fenced {
 public:
  explicit Fenced(std::size_t size) : page_(static_cast<std::size_t>(sysconf(_SC_PAGESIZE))) {
    inner_ = (size + page_ - 1) / page_ * page_;
    base_ = static_cast<std::uint8_t*>(
        mmap(nullptr, inner_ + 2 * page_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    if (base_ == MAP_FAILED) std::abort();
    mprotect(base_, page_, PROT_NONE);
    mprotect(base_ + page_ + inner_, page_, PROT_NONE);
  }
  ~Fenced() { munmap(base_, inner_ + 2 * page_); }
  Fenced(const Fenced&) = delete;
  Fenced& operator=(const Fenced&) = delete;
  std::uint8_t* begin() const { return base_ + page_; }
  std::uint8_t* end() const { return begin() + inner_; }

 private:
  std::size_t page_, inner_;
  std::uint8_t* base_;
};

TEST(Gray, TouchesNoPageBesideThePicture) {
  const Fenced rgb(20000), gray(8000);
  for (const char* isa : isas()) {
    const Queue queue = queue_of(1, -1, isa);
    for (std::int64_t n = 1; n < 400; n += n < 140 ? 1 : 37)
      for (std::int64_t pixel : {3, 4})
        for (bool at_end : {false, true})
          for (std::int64_t channel : {1, -1}) {
            const std::int64_t bytes = (n - 1) * pixel + 3;  // no fourth byte behind the last pixel
            const std::uint8_t* first = at_end ? rgb.end() - bytes : rgb.begin();
            const Status s = rgb_to_gray(queue, view(first + (channel < 0 ? 2 : 0), {n, 3}, {pixel, channel}),
                                         view(at_end ? gray.end() - n : gray.begin(), {n}));
            ASSERT_TRUE(s) << s.message();
          }
  }
}

TEST(Gray, RefusesWithASentence) {
  const Queue queue = queue_of(1, -1);
  Bytes rgb(300), gray(300);
  const auto message = [](const Status& s) { return std::string(s.message()); };
  const auto in = view(rgb.data(), {4, 5, 3});
  EXPECT_EQ(message(rgb_to_gray(queue, view(rgb.data(), {4, 5, 4}), view(gray.data(), {4, 5}))),
            "rgb_to_gray: rgb is 4x5x4 u8, must be ...x3");
  EXPECT_EQ(message(rgb_to_gray(queue, in, view(gray.data(), {5, 4}))),
            "rgb_to_gray: gray is 5x4 u8, must be 4x5 where rgb is 4x5x3 u8");
  EXPECT_EQ(message(rgb_to_gray(queue, in, view(gray.data(), {4, 5, 3}))),
            "rgb_to_gray: gray is 4x5x3 u8, must be 4x5 where rgb is 4x5x3 u8");
  EXPECT_NE(message(rgb_to_gray(queue, in, View{})).find("gray is absent"), std::string::npos);
  EXPECT_NE(message(rgb_to_gray(queue, in, view(rgb.data(), {4, 5}))).find("must lie apart"),
            std::string::npos);
  EXPECT_NE(message(rgb_to_gray(queue, in, view(gray.data(), {4, 5}, {0, 1}))).find("several elements"),
            std::string::npos);
  GrayOptions odd;
  odd.weights = static_cast<GrayWeights>(7);
  EXPECT_EQ(message(rgb_to_gray(queue, in, view(gray.data(), {4, 5}), odd)),
            "rgb_to_gray: weights is 7, must be bt601 (0) or luminosity (1)");
  EXPECT_EQ(message(rgb_to_gray(queue, view(rgb.data(), {4, 5, 3}, {20, 4, 1}), view(gray.data(), {4, 5}),
                                {GrayWeights::bt601, "01_scalar"})),
            "rgb_to_gray: the ladder's rungs take packed pixels, these are 4 bytes apart, their channels 1, "
            "the gray "
            "ones 1");
  std::vector<float> floats(60);
  EXPECT_NE(
      message(rgb_to_gray(queue, view(floats.data(), {4, 5, 3}), view(gray.data(), {4, 5}))).find("f32"),
      std::string::npos);
  // The fourth byte of RGBA is no part of rgb, so gray may lie there.
  EXPECT_TRUE(
      rgb_to_gray(queue, view(rgb.data(), {4, 5, 3}, {20, 4, 1}), view(rgb.data() + 3, {4, 5}, {20, 4})));
}

}  // namespace
}  // namespace rooftile
