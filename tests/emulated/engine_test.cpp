// The emulated device's plain engine: kernels of engine.cu, in order and in orders drawn from seeds.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "rooftile/core/convert.h"
#include "tests/emulated/engine.h"

namespace rooftile::emulated::test {
namespace {
using ::testing::Test;

#define EXPECT_OK(status)                 \
  do {                                    \
    const Status s_ = (status);           \
    EXPECT_TRUE(s_.ok()) << s_.message(); \
  } while (false)
#define EXPECT_SAYS(status, text)                                                                     \
  do {                                                                                                \
    const Status s_ = (status);                                                                       \
    EXPECT_NE(std::string(s_.message()).find(text), std::string::npos) << '"' << s_.message() << '"'; \
  } while (false)

class Engine : public testing::TestWithParam<std::uint64_t> {
 protected:
  Options options() const { return {.seed = GetParam()}; }
};
INSTANTIATE_TEST_SUITE_P(Seeds, Engine, testing::Values(0, 1, 2, 3, 4, 5));

TEST_P(Engine, NumbersThreadsAndBlocks) {
  const dim3 grid(3, 2, 2), block(5, 3, 2);
  std::vector<unsigned> out(12 * 30);
  EXPECT_OK(launch_of::indices({grid, block}, options(), out.data()));
  std::size_t i = 0;
  for (unsigned bz = 0; bz < 2; ++bz)
    for (unsigned by = 0; by < 2; ++by)
      for (unsigned bx = 0; bx < 3; ++bx)
        for (unsigned z = 0; z < 2; ++z)
          for (unsigned y = 0; y < 3; ++y)
            for (unsigned x = 0; x < 5; ++x)
              ASSERT_EQ(out[i++], x + 100 * y + 10000 * z + 1000000 * (bx + 10 * by + 100 * bz));
}

TEST_P(Engine, SharedMemoryIsABlocksOwn) {
  for (const unsigned threads : {64u, 256u})
    for (const int host_threads : {1, 3}) {
      const unsigned blocks = 256;
      std::vector<float> x(blocks * threads), y(x.size());
      std::iota(x.begin(), x.end(), 0.f);
      Options o = options();
      o.threads = host_threads;
      EXPECT_OK(launch_of::reverse({blocks, threads}, o, x.data(), y.data(), 3));
      for (std::size_t i = 0; i < x.size(); ++i)
        ASSERT_EQ(y[i], x[i / threads * threads + threads - 1 - i % threads]);
    }
}

TEST_P(Engine, WarpFunctions) {
  constexpr unsigned kThreads = 96, kResults = 19;
  std::vector<int> out(kThreads * kResults, -1);
  EXPECT_OK(launch_of::warp_functions({1, kThreads}, options(), out.data()));
  for (unsigned t = 0; t < kThreads; ++t) {
    const unsigned lane = t % 32, warp = t - lane;
    std::size_t i = 0;
    const auto next = [&] { return out[i++ * kThreads + t]; };
    ASSERT_EQ(next(), int(warp + 3));
    ASSERT_EQ(next(), int(t / 8 * 8 + 3));
    ASSERT_EQ(next(), int(lane < 2 ? t : t - 2));
    ASSERT_EQ(next(), int(t % 16 + 5 < 16 ? t + 5 : t));
    ASSERT_EQ(next(), int(t ^ 16));
    ASSERT_EQ(next(), int(t ^ 1));
    ASSERT_EQ(next(), int((lane + 1) % 32));
    unsigned thirds = 0;
    for (unsigned l = 0; l < 32; l += 3) thirds |= 1u << l;
    ASSERT_EQ(next(), int(thirds));
    ASSERT_EQ(next(), 1);
    ASSERT_EQ(next(), 0);
    ASSERT_EQ(next(), int(0xfu << lane / 4 * 4));
    ASSERT_EQ(next(), 31 * 16);
    ASSERT_EQ(next(), -9);
    ASSERT_EQ(next(), -40);
    ASSERT_EQ(next(), int(lane < 16 ? 3 * (lane ^ 1) : 5 * (lane ^ 2)));
    ASSERT_EQ(next(), 32);
    ASSERT_EQ(next(), 1);
    ASSERT_EQ(next(), 0);
    ASSERT_EQ(next(), 1);
  }
}

TEST_P(Engine, ThreadsThatEndedAreNotWaitedFor) {
  std::vector<int> out(64, -7);
  EXPECT_OK(launch_of::early_exit({1, 64}, options(), out.data()));
  for (int t = 0; t < 64; ++t) ASSERT_EQ(out[t], t % 2 ? -7 : t % 32 + 2 < 32 ? t + 2 : t);
}

TEST_P(Engine, LastBlockSumsUp) {
  const int n = 100'000;
  const unsigned blocks = 100;
  std::vector<float> x(n, 1), partial(blocks);
  float sum = 0;
  unsigned counter = 0;
  Options o = options();
  for (o.threads = 1; o.threads <= 2; ++o.threads) {
    EXPECT_OK(launch_of::last_block({blocks, 256}, o, x.data(), partial.data(), &sum, &counter, n));
    EXPECT_EQ(sum, float(n));
    EXPECT_EQ(counter, 0u);
  }
}

TEST_P(Engine, BlocksMayWaitForLowerOnes) {
  const unsigned blocks = 1024;
  std::vector<unsigned> flags(blocks), out(blocks);
  Options o = options();
  o.threads = 2;
  EXPECT_OK(launch_of::wait_for_lower({blocks, 32}, o, flags.data(), out.data()));
  EXPECT_EQ(out.back(), blocks);
}

TEST_P(Engine, LocksLetTheirHolderRun) {
  unsigned lock = 0;
  int count = 0;
  Options o = options();
  o.threads = 2;
  EXPECT_OK(launch_of::spin_lock({128, 256}, o, &lock, &count));
  EXPECT_EQ(count, 128 * 256);
}

TEST_P(Engine, EndlessWaitsAreSentences) {
  unsigned flags[2] = {};
  Options o = options();
  o.patience_ms = 50;
  EXPECT_SAYS(launch_of::wait_for_higher({2, 32}, o, flags), "polls memory that nobody changes");
  for (int i = 0; i < 3; ++i) {  // the runner of an abandoned launch serves again
    const Status s = launch_of::deadlock({1, 64}, options());
    EXPECT_SAYS(s, "deadlock in block (0, 0, 0): threads 0 to 31 wait at __syncthreads (");
    EXPECT_SAYS(s, "engine.cu:");
    EXPECT_SAYS(s, "; threads 32 to 63 wait at a named barrier");
    std::vector<int> out(64);
    EXPECT_OK(launch_of::early_exit({1, 64}, options(), out.data()));
  }
}

TEST_P(Engine, LanesMustComeToOneKindOfShuffle) {
  std::vector<int> out(64);
  EXPECT_SAYS(launch_of::two_kinds_of_shuffle({1, 64}, options(), out.data()),
              "of a warp meet in different operations");
}

TEST_P(Engine, TrapsAndAssertsAreSentences) {
  EXPECT_OK(launch_of::trap_at({2, 64}, options(), 64));
  EXPECT_SAYS(launch_of::trap_at({2, 64}, options(), 33), "trap_at: __trap in thread 33");
  EXPECT_OK(launch_of::assert_below({2, 64}, options(), 64));
  EXPECT_SAYS(launch_of::assert_below({2, 64}, options(), 63),
              "assertion int(threadIdx.x) < limit failed in thread 63");
}

TEST_P(Engine, OverrunsAreSeenAtTheBlocksEnd) {
  EXPECT_OK(launch_of::overrun({2, 32}, options(), 0));
  EXPECT_SAYS(launch_of::overrun({2, 32}, options(), 1),
              "wrote past the end of its shared array line (128 bytes");
}

TEST_P(Engine, CopiesAreMadeWhenWaitedFor) {
  const int tiles = 5;
  std::vector<float> x(tiles * 128), y(x.size());
  std::iota(x.begin(), x.end(), 1.f);
  EXPECT_OK(launch_of::async_double_buffer({1, 32}, options(), true, x.data(), y.data(), tiles));
  for (std::size_t i = 0; i < x.size(); ++i) {
    const std::size_t tile = i / 128, from = tile * 128 + (31 - i / 4 % 32) * 4 + i % 4;
    const bool whole = tile == 0 || tile % 2 == 1 || i % 4 < 2;
    ASSERT_EQ(y[i], whole ? x[from] : 0) << i;
  }
  EXPECT_OK(launch_of::async_double_buffer({1, 32}, options(), false, x.data(), y.data(), tiles));
  for (const float v : y) ASSERT_TRUE(std::isnan(v));
}

TEST_P(Engine, BulkCopiesArriveAtMbarriers) {
  const int tiles = 11;
  std::vector<float> x(tiles * 32), y(x.size());
  std::iota(x.begin(), x.end(), 1.f);
  EXPECT_OK(launch_of::ring({1, 64}, options(), x.data(), y.data(), tiles));
  for (std::size_t i = 0; i < x.size(); ++i) ASSERT_EQ(y[i], 2 * x[i]);
}

TEST_P(Engine, ClustersShareTheirMemory) {
  std::vector<float> out(16 * 64);
  EXPECT_OK(launch_of::cluster_sum({.grid = 16, .block = 64, .cluster = 8}, options(), out.data()));
  for (const float v : out) ASSERT_EQ(v, 36);
  EXPECT_SAYS(launch_of::cluster_sum({.grid = 15, .block = 64, .cluster = 8}, options(), out.data()),
              "clusters of 8 blocks in a grid of 15");
  Options o = options();
  o.architecture = 80;
  EXPECT_SAYS(launch_of::cluster_sum({.grid = 16, .block = 64, .cluster = 8}, o, out.data()), "on sm_80");
}

TEST_P(Engine, BlocksOfAClusterSendToEachOther) {
  std::vector<float> out(8 * 32);
  EXPECT_OK(launch_of::cluster_send({.grid = 8, .block = 32, .cluster = 4}, options(), out.data(), 5, true));
  for (const float v : out) ASSERT_EQ(v, 5 * (0 + 1 + 2 + 3) + 4 * (0 + 1 + 2 + 3 + 4));
}

TEST_P(Engine, NamedBarriersCountTheirThreads) {
  std::vector<int> out(96);
  EXPECT_OK(launch_of::named({1, 96}, options(), out.data()));
  for (int t = 0; t < 96; ++t) ASSERT_EQ(out[t], t < 64 ? 63 - t : t - 64);
}

TEST_P(Engine, ArgumentsAreEachThreadsOwn) {
  std::vector<int> out(64);
  EXPECT_OK(launch_of::by_value({1, 64}, options(), out.data()));
  for (int t = 0; t < 64; ++t) ASSERT_EQ(out[t], 12 + t);
}

TEST(EngineLimits, SharedMemory) {
  std::vector<int> out(64);
  EXPECT_SAYS(launch_of::static_shared_49k({1, 1}, {}), "1024 bytes for the shared array c");
  EXPECT_OK(launch_of::dynamic_sum({1, 64, 256}, {}, out.data()));
  EXPECT_EQ(out[5], 63 * 32);
  EXPECT_SAYS(launch_of::dynamic_sum({1, 64}, {}, out.data()), "its launch gives none");
  for (const auto& [architecture, kib] : {std::pair{80, 163}, {86, 99}, {89, 99}, {90, 227}}) {
    const auto limit = static_cast<std::size_t>(kib) << 10;
    EXPECT_EQ(shared_limit(architecture), limit);
    EXPECT_OK(launch_of::dynamic_sum({1, 64, limit}, {.architecture = architecture}, out.data()));
    EXPECT_SAYS(launch_of::dynamic_sum({1, 64, limit + 1}, {.architecture = architecture}, out.data()),
                std::to_string(limit + 1) + " bytes of dynamic shared memory; a block of sm_" +
                    std::to_string(architecture));
  }
  std::vector<float> poison(32);
  EXPECT_OK(launch_of::poison({1, 32}, {}, poison.data()));
  for (const float v : poison) EXPECT_TRUE(std::isnan(v));
}

TEST(EngineLimits, Geometry) {
  EXPECT_SAYS(launch_of::trap_at({1, 1025}, {}, -1), "a block of 1025x1x1 threads");
  EXPECT_SAYS(launch_of::trap_at({1, 0}, {}, -1), "a block of 0x1x1 threads");
  EXPECT_SAYS(launch_of::trap_at({dim3(1, 65536), 1}, {}, -1), "a grid of 1x65536x1 blocks");
  EXPECT_SAYS(launch_of::trap_at({0, 1}, {}, -1), "a grid of 0x1x1 blocks");
  EXPECT_SAYS(launch_of::trap_at({1, 1}, {.architecture = 42}, -1), "there is no sm_42");
  EXPECT_OK(launch_of::trap_at({100'000, 1}, {}, -1));
}

TEST(EngineConversions, AreTheHardwares) {
  std::vector<unsigned short> bits(65536);
  std::iota(bits.begin(), bits.end(), static_cast<unsigned short>(0));
  std::vector<float> wide(65536);
  EXPECT_OK(launch_of::widen_half({256, 256}, {}, bits.data(), wide.data()));
  for (unsigned i = 0; i < 65536; ++i) {
    const float expected = to_float(f16{static_cast<std::uint16_t>(i)});
    if (std::isnan(expected))
      ASSERT_TRUE(std::isnan(wide[i]));
    else
      ASSERT_EQ(std::bit_cast<unsigned>(wide[i]), std::bit_cast<unsigned>(expected)) << i;
  }
  // Halfway between halves and next to it, every exponent, and random bits.
  std::vector<float> x;
  for (unsigned i = 0; i < 65536; ++i) {
    if (!std::isfinite(wide[i])) continue;
    const std::uint32_t b = std::bit_cast<std::uint32_t>(wide[i]);
    for (const std::uint32_t offset : {0u, 0xfffu, 0x1000u, 0x1001u, 0x7fffu, 0x8000u, 0x8001u})
      x.push_back(std::bit_cast<float>(b + offset));
  }
  std::uint32_t r = 1;
  for (int i = 0; i < 200'000; ++i) x.push_back(std::bit_cast<float>(r = r * 1664525u + 1013904223u));
  for (const float v : {65504.f, 65519.99f, 65520.f, 0x1p-24f, 0x1p-25f, 0x1.000002p-25f, INFINITY, -INFINITY,
                        NAN, -NAN, 0x1p-133f, 0x1p-149f})
    x.push_back(v);
  std::vector<unsigned short> halves(x.size()), bfloats(x.size());
  EXPECT_OK(launch_of::convert({static_cast<unsigned>((x.size() + 255) / 256), 256}, {.threads = 2}, x.data(),
                               halves.data(), bfloats.data(), int(x.size())));
  for (std::size_t i = 0; i < x.size(); ++i) {
    ASSERT_EQ(halves[i], std::isnan(x[i]) ? 0x7fff : from_double<f16>(x[i]).bits) << x[i];
    ASSERT_EQ(bfloats[i], std::isnan(x[i]) ? 0x7fff : from_double<bf16>(x[i]).bits) << x[i];
  }
}

TEST(EngineAtomics, AddAndCompare) {
  int i = 0;
  unsigned u = 0;
  unsigned long long l = 0;
  float f = 0;
  double d = 0;
  EXPECT_OK(launch_of::count_atomics({64, 512}, {.threads = 2}, &i, &u, &l, &f, &d));
  EXPECT_EQ(i, -32768);
  EXPECT_EQ(u, 65536u);
  EXPECT_EQ(l, 511u);
  EXPECT_EQ(f, 16384);
  EXPECT_EQ(d, 8192);
}

TEST(EngineThreads, ManyHostsLaunchAtOnce) {
  std::vector<std::thread> hosts;
  for (unsigned h = 0; h < 4; ++h)
    hosts.emplace_back([h] {
      for (unsigned k = 0; k < 20; ++k) {
        const unsigned threads = h % 2 ? 64 : 256;
        std::vector<float> x(8 * threads, float(h + k)), y(x.size());
        EXPECT_OK(launch_of::reverse({8, threads}, {.seed = k}, x.data(), y.data(), 2));
        EXPECT_EQ(x, y);
        if (k % 5 == 0) EXPECT_SAYS(launch_of::deadlock({1, 64}, {}), "deadlock");
      }
    });
  for (std::thread& host : hosts) host.join();
}

}  // namespace
}  // namespace rooftile::emulated::test
