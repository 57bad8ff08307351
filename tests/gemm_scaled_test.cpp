// What the cases of rooftile/ops/gemm_scaled cannot say: on one GPU, wgmma has the bits of mma.
#include "rooftile/ops/gemm_scaled/gemm_scaled.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <vector>

namespace rooftile {
namespace {

/// By the build's word, not by trying: a device that fails must not pass for one that is absent.
constexpr bool kEmulatedIsBuilt = ROOFTILE_TEST_EMULATED;

/// A number: NaN has many bits.
bool is_number(std::int8_t) { return true; }
bool is_number(f8e4m3 x) { return (x.bits & 0x7F) != 0x7F; }
bool is_number(f8e5m2 x) { return (x.bits & 0x7F) < 0x7C; }

/// T: of a's and b's codes.
template <class T>
void gives_the_same_bits(const Queue& queue, std::int64_t m, std::int64_t k, std::int64_t n,
                         std::int64_t block, std::int64_t block_n, bool by_rows = false) {
  std::mt19937 random(static_cast<unsigned>(m * 1000 + k * 10 + n));
  const auto codes = [&](std::int64_t count) {
    std::vector<T> list(static_cast<std::size_t>(count));
    for (T& x : list) {
      const auto code = static_cast<std::uint8_t>(random());
      std::memcpy(&x, &code, 1);
      if (!is_number(x)) x = T{};
    }
    return list;
  };
  const auto scales = [&](std::int64_t count) {
    std::vector<float> list(static_cast<std::size_t>(count));
    for (float& x : list) x = std::uniform_real_distribution<float>(0.5f, 2)(random);
    return list;
  };
  const std::int64_t blocks = (k + block - 1) / block, blocks_n = (n + block_n - 1) / block_n;
  const std::vector<T> a = codes(m * k), b = codes(n * k);
  const std::vector<float> scale_a = scales(m * blocks), scale_b = scales(blocks_n * blocks);
  ConstView its_b = by_rows ? view(b.data(), {k, n}) : view(b.data(), {n, k});
  if (!by_rows) {
    std::swap(its_b.shape[0], its_b.shape[1]);
    std::swap(its_b.stride[0], its_b.stride[1]);
  }
  std::vector<float> y[2];
  const char* const variants[] = {"wgmma", "mma"};
  for (int i = 0; i < 2; ++i) {
    y[i].assign(static_cast<std::size_t>(m * n), -7);
    const GemmScaledInputs inputs{view(a.data(), {m, k}), its_b, view(scale_a.data(), {m, blocks}),
                                  view(scale_b.data(), {blocks, blocks_n})};
    const View result = view(y[i].data(), {m, n});
    const GemmScaledOptions options{block, block_n, variants[i]};
    std::size_t bytes = 0;
    ASSERT_TRUE(gemm_scaled_workspace(queue, inputs, result, options, bytes));
    EXPECT_EQ(bytes != 0, (!std::is_same_v<T, std::int8_t>));
    std::vector<std::byte> memory(bytes + 256);
    const auto address = (reinterpret_cast<std::uintptr_t>(memory.data()) + 255) / 256 * 256;
    const Status s = gemm_scaled(queue, inputs, result, options, {reinterpret_cast<void*>(address), bytes});
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
      gives_the_same_bits<std::int8_t>(queue, 300, 1040, 140, block, 1);
      gives_the_same_bits<std::int8_t>(queue, 130, 272, 257, block, 128);
      gives_the_same_bits<std::int8_t>(queue, 5, 128, 40, block, 3);
      gives_the_same_bits<f8e4m3>(queue, 300, 1040, 140, block, 1);
      gives_the_same_bits<f8e4m3>(queue, 130, 301, 257, block, 128);  // unaligned, an odd number of slices
      gives_the_same_bits<f8e5m2>(queue, 17, 200, 40, block, 3, true);
    }
  }
}

}  // namespace
}  // namespace rooftile
