// What the cases of rooftile/ops/attention_scaled cannot say: on GPUs without wgmma scales enter another
// kernel, and leave it in the same bits.
#include "rooftile/ops/attention_scaled/attention_scaled.h"

#include <gtest/gtest.h>

#include <bit>
#include <memory>
#include <random>
#include <vector>

#include "rooftile/core/convert.h"

namespace rooftile {
namespace {

/// By the build's word, not by trying: a device that fails must not pass for one that is absent.
constexpr bool kEmulatedIsBuilt = ROOFTILE_TEST_EMULATED;
constexpr std::int64_t kB = 2, kS = 140, kT = 1100, kH = 4, kG = 2;

std::vector<f8e4m3> codes(std::int64_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<double> normal;
  std::vector<f8e4m3> all;
  for (std::int64_t i = 0; i < count; ++i) all.push_back(from_double<f8e4m3>(normal(random)));
  return all;
}

/// y, then lse, as bits. d: 64, which mma takes in whole tiles, or another.
std::vector<std::uint32_t> results(int architecture, std::int64_t d) {
  const Queue queue = Queue::emulated({.architecture = architecture, .threads = 2});
  EXPECT_TRUE(queue.status()) << queue.status().message();
  std::vector<f8e4m3> q = codes(kB * kS * kH * d, 1), k = codes(kB * kT * kG * d, 2),
                      v = codes(kB * kT * kG * d, 3);
  std::vector<float> scales = {0.5f, 1.7f, 2.9f, 0.3f};
  std::vector<bf16> y(q.size());
  std::vector<float> lse(static_cast<std::size_t>(kB * kH * kS));
  const ConstView each = view(scales.data(), {kB, kG});
  const AttentionScaledInputs in{view(q.data(), {kB, kS, kH, d}),
                                 view(k.data(), {kB, kT, kG, d}),
                                 view(v.data(), {kB, kT, kG, d}),
                                 each,
                                 each,
                                 each};
  const AttentionScaledOutputs out{view(y.data(), {kB, kS, kH, d}), view(lse.data(), {kB, kH, kS})};
  std::size_t bytes = 0;
  EXPECT_TRUE(attention_scaled_workspace(queue, in, out, bytes));
  std::vector<std::byte> memory(bytes + 64);
  void* at = memory.data();
  std::size_t room = memory.size();
  std::align(64, bytes, at, room);
  const Status status = attention_scaled(queue, in, out, {.causal = true}, {at, bytes});
  EXPECT_TRUE(status) << status.message();
  std::vector<std::uint32_t> all;
  for (const bf16 x : y) all.push_back(std::bit_cast<std::uint16_t>(x));
  for (const float x : lse) all.push_back(std::bit_cast<std::uint32_t>(x));
  return all;
}

TEST(AttentionScaled, GivesTheBitsOfMmaByWgmmaOnTheEmulatedDevice) {
  if (!kEmulatedIsBuilt) GTEST_SKIP() << "this build has no emulated device";
  for (const std::int64_t d : {64, 72}) EXPECT_EQ(results(80, d), results(90, d)) << "heads of " << d;
}

}  // namespace
}  // namespace rooftile
