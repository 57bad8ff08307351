// What the cases of rooftile/ops/gemm_scaled cannot say: on one GPU, i8 by wgmma has the bits of mma.
#include "rooftile/ops/gemm_scaled/gemm_scaled.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <vector>

namespace rooftile {
namespace {

/// By the build's word, not by trying: a device that fails must not pass for one that is absent.
constexpr bool kEmulatedIsBuilt = ROOFTILE_TEST_EMULATED;

void gives_the_same_bits(const Queue& queue, std::int64_t m, std::int64_t k, std::int64_t n,
                         std::int64_t block, std::int64_t block_n) {
  std::mt19937 random(static_cast<unsigned>(m * 1000 + k * 10 + n));
  const auto codes = [&](std::int64_t count) {
    std::vector<std::int8_t> list(static_cast<std::size_t>(count));
    for (std::int8_t& x : list) x = static_cast<std::int8_t>(static_cast<int>(random() % 256) - 128);
    return list;
  };
  const auto scales = [&](std::int64_t count) {
    std::vector<float> list(static_cast<std::size_t>(count));
    for (float& x : list) x = std::uniform_real_distribution<float>(0.5f, 2)(random);
    return list;
  };
  const std::int64_t blocks = (k + block - 1) / block, blocks_n = (n + block_n - 1) / block_n;
  const std::vector<std::int8_t> a = codes(m * k), b = codes(n * k);
  const std::vector<float> scale_a = scales(m * blocks), scale_b = scales(blocks_n * blocks);
  ConstView by_columns = view(b.data(), {n, k});
  std::swap(by_columns.shape[0], by_columns.shape[1]);
  std::swap(by_columns.stride[0], by_columns.stride[1]);
  std::vector<float> y[2];
  const char* const variants[] = {"wgmma", "mma"};
  for (int i = 0; i < 2; ++i) {
    y[i].assign(static_cast<std::size_t>(m * n), -7);
    const Status s = gemm_scaled(queue,
                                 {view(a.data(), {m, k}), by_columns, view(scale_a.data(), {m, blocks}),
                                  view(scale_b.data(), {blocks, blocks_n})},
                                 view(y[i].data(), {m, n}), {block, block_n, variants[i]});
    ASSERT_TRUE(s) << s.message();
  }
  EXPECT_EQ(std::memcmp(y[0].data(), y[1].data(), y[0].size() * sizeof(float)), 0)
      << m << "x" << k << "x" << n << ", block " << block;
}

TEST(GemmScaled, GivesTheBitsOfMmaByWgmmaOnTheEmulatedDevice) {
  if (!kEmulatedIsBuilt) GTEST_SKIP() << "this build has no emulated device";
  for (const int threads : {1, 2}) {  // as many multiprocessors, by which clusters are chosen
    const Queue queue = Queue::emulated({.threads = threads});
    ASSERT_TRUE(queue.status()) << queue.status().message();
    for (const std::int64_t block : {128, 4096}) {
      gives_the_same_bits(queue, 300, 1040, 140, block, 1);
      gives_the_same_bits(queue, 130, 272, 257, block, 128);
      gives_the_same_bits(queue, 5, 128, 40, block, 3);
    }
  }
}

}  // namespace
}  // namespace rooftile
