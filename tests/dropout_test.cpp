// What the cases of rooftile/ops/dropout cannot say: the published vectors, one mask on every machine, its
// statistics, and the ends of p's range to the bit.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "rooftile/core/philox.h"
#include "rooftile/ops/dropout/dropout.h"

namespace rooftile {
namespace {

constexpr std::int64_t kNever = std::int64_t{1} << 62;
constexpr float kInfinity = std::numeric_limits<float>::infinity();

/// Each instruction set that is built and runs here, on one thread and on three, and the emulated device.
std::vector<Queue> queues() {
  std::vector<Queue> all;
  for (const char* isa : {"baseline", "avx2", "avx512"})
    for (const bool several : {false, true}) {
      CpuOptions options;
      options.threads = several ? 3 : 1;
      options.isa = isa;
      options.streaming_bytes = several ? 0 : kNever;
      if (Queue queue = Queue::cpu(options); queue.status()) all.push_back(std::move(queue));
    }
  if (Queue queue = Queue::emulated({.threads = 2}); queue.status()) all.push_back(std::move(queue));
  return all;
}

/// x by forward, or dy by backward.
std::vector<float> dropped(const Queue& queue, std::vector<float> x, double p, std::int64_t seed,
                           std::int64_t offset = 0, bool backward = false) {
  std::vector<float> y(x.size(), -1);
  const std::int64_t n = static_cast<std::int64_t>(x.size());
  const ConstView from = view(x.data(), {n}), its_seed = view(&seed, {1}), its_offset = view(&offset, {1});
  const Status s =
      backward ? dropout_backward(queue, {from, its_seed, its_offset}, {.dx = view(y.data(), {n})}, {.p = p})
               : dropout(queue, {from, its_seed, its_offset}, view(y.data(), {n}), {.p = p});
  EXPECT_TRUE(s) << s.message();
  return y;
}

TEST(Philox, HasTheWordsThatAreInRandom123sTable) {
  const auto is = [](PhiloxWords counter, std::uint64_t key, PhiloxWords expected) {
    const PhiloxWords got = philox(counter, key);
    for (int i = 0; i < 4; ++i) EXPECT_EQ(got.word[i], expected.word[i]) << i;
  };
  is({{0, 0, 0, 0}}, 0, {{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}});
  constexpr std::uint32_t kOnes = 0xffffffff;
  is({{kOnes, kOnes, kOnes, kOnes}}, ~std::uint64_t{0}, {{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}});
  is({{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}}, 0x299f31d0a4093822,
     {{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}});
}

TEST(Dropout, KeepsWhatItsWordsSayOnEveryMachine) {
  for (const Queue& queue : queues())
    for (const std::int64_t seed : {std::int64_t{7}, std::int64_t{-1}, std::int64_t{8589934593}})
      for (const std::int64_t offset : {std::int64_t{0}, std::int64_t{-5}, (std::int64_t{1} << 32) - 100}) {
        const std::vector<float> y = dropped(queue, std::vector<float>(5003, 1), 0.25, seed, offset);
        const PhiloxStream stream{static_cast<std::uint64_t>(seed), static_cast<std::uint64_t>(offset)};
        for (std::size_t i = 0; i < y.size(); ++i)
          ASSERT_EQ(y[i] != 0, stream.word(i) >= 0x40000000)
              << i << ", seed " << seed << ", offset " << offset;
      }
}

TEST(Dropout, DropsTheSameForwardAndBackward) {
  for (const Queue& queue : queues())
    EXPECT_EQ(dropped(queue, std::vector<float>(1001, 3), 0.4, 99, 2, false),
              dropped(queue, std::vector<float>(1001, 3), 0.4, 99, 2, true));
}

TEST(Dropout, HasOneMaskForEveryWayThatATensorLies) {
  constexpr std::int64_t kRows = 37, kColumns = 53;
  const std::vector<float> expected = dropped(Queue::cpu(), std::vector<float>(kRows * kColumns, 1), 0.5, 11);
  const std::int64_t seed = 11;
  for (const Queue& queue : queues())
    for (const bool transposed : {false, true}) {
      std::vector<float> x(2 * kRows * (kColumns + 1), 1), y(x.size(), -1);
      View in = view(x.data(), {kRows, kColumns}), out = view(y.data(), {kRows, kColumns});
      for (View* v : {&in, &out}) {
        v->stride[0] = transposed ? 2 : 2 * (kColumns + 1);
        v->stride[1] = transposed ? 2 * kRows : 2;
      }
      const Status s = dropout(queue, {.x = in, .seed = view(&seed, {1})}, out);
      ASSERT_TRUE(s) << s.message();
      for (std::int64_t r = 0; r < kRows; ++r)
        for (std::int64_t c = 0; c < kColumns; ++c)
          ASSERT_EQ(y[static_cast<std::size_t>(r * out.stride[0] + c * out.stride[1])],
                    expected[static_cast<std::size_t>(r * kColumns + c)])
              << r << ", " << c;
    }
}

TEST(Dropout, CopiesToTheBitWhereNothingIsDropped) {
  const std::vector<float> x = {1.1f, -0.0f, 0.0f, kInfinity, -kInfinity, 1e-45f, 3.4e38f, -7, 2};
  for (const Queue& queue : queues()) {
    const std::vector<float> y = dropped(queue, x, 0, 5);
    EXPECT_EQ(std::memcmp(x.data(), y.data(), x.size() * sizeof(float)), 0);
  }
}

TEST(Dropout, GivesZerosWhereAllIsDropped) {
  const std::vector<float> x = {1, kInfinity, -kInfinity, std::nanf(""), 0, -1, 5, 6, 7};
  for (const Queue& queue : queues())
    for (const double p : {1.0, 1 - 0x1p-40}) {  // of a share below 2^-32 none is kept
      const std::vector<float> y = dropped(queue, x, p, 5), zeros(x.size());
      EXPECT_EQ(std::memcmp(zeros.data(), y.data(), x.size() * sizeof(float)), 0);
    }
}

TEST(Dropout, ComparesExactly) {
  const std::uint32_t word = PhiloxStream{3, 0}.word(0);
  for (const Queue& queue : queues()) {
    EXPECT_NE(dropped(queue, {1}, word * 0x1p-32, 3)[0], 0);  // rand >= p: equal ones stay
    EXPECT_EQ(dropped(queue, {1}, std::nextafter(word * 0x1p-32, 1.0), 3)[0], 0);
  }
}

/// Σ (kept - expected)²/variance over blocks lies within four standard deviations of their number.
TEST(Dropout, KeepsItsShareOfEveryBlock) {
  constexpr std::size_t kBlocks = 2000, kBlock = 500;
  for (const double p : {0.1, 0.5, 0.9}) {
    const std::vector<float> y = dropped(Queue::cpu(), std::vector<float>(kBlocks * kBlock, 1), p, 12345);
    double chi_squared = 0, all = 0;
    for (std::size_t b = 0; b < kBlocks; ++b) {
      double kept = 0;
      for (std::size_t i = 0; i < kBlock; ++i) kept += y[b * kBlock + i] != 0;
      const double expected = (1 - p) * kBlock;
      chi_squared += (kept - expected) * (kept - expected) / (expected * p);
      all += kept;
    }
    const double n = kBlocks * kBlock;
    EXPECT_NEAR(chi_squared, kBlocks, 4 * std::sqrt(2.0 * kBlocks)) << p;
    EXPECT_NEAR(all / n, 1 - p, 4 * std::sqrt(p * (1 - p) / n)) << p;
  }
}

TEST(Dropout, RefusesInWords) {
  float x[4] = {}, y[4];
  const std::int64_t seed = 1;
  const auto message = [&](const DropoutInputs& in, double p) {
    return std::string(dropout(Queue::cpu(), in, view(y, {4}), {.p = p}).message());
  };
  EXPECT_EQ(message({.x = view(x, {4}), .seed = view(&seed, {1})}, 1.5),
            "dropout: p is 1.5, must be a number from 0 to 1");
  EXPECT_EQ(message({.x = view(x, {4}), .seed = view(&seed, {1})}, std::nan("")),
            "dropout: p is nan, must be a number from 0 to 1");
  EXPECT_EQ(message({.x = view(x, {4}), .seed = {}}, 0.5), "dropout: seed is absent");
  EXPECT_EQ(message({.x = view(x, {4}), .seed = view(x, {1})}, 0.5),
            "dropout: seed is 1 f32, must be one of i64, i32");
}

}  // namespace
}  // namespace rooftile
