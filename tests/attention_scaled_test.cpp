// What the cases of rooftile/ops/attention_scaled cannot say: on GPUs without wgmma scales enter another
// kernel, and leave it in the same bits.
#include "rooftile/ops/attention_scaled/attention_scaled.h"

#include <gtest/gtest.h>

#include <algorithm>
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

/// Which batches and queries a call has, and how far apart a token's heads are.
struct Part {
  std::int64_t batch = 0, batches = kB, first = 0, queries = kS, apart = 0;
};

/// y {batches, queries, H, D}, then lse, as bits.
std::vector<std::uint32_t> results(const Queue& queue, std::int64_t d, const AttentionScaledOptions& options,
                                   const Part& part = {}) {
  EXPECT_TRUE(queue.status()) << queue.status().message();
  const std::int64_t pitch = d + part.apart;
  const auto padded = [&](const std::vector<f8e4m3>& dense) {
    std::vector<f8e4m3> all(dense.size() / static_cast<std::size_t>(d) * static_cast<std::size_t>(pitch));
    for (std::size_t i = 0; i < dense.size(); ++i)
      all[i / static_cast<std::size_t>(d) * static_cast<std::size_t>(pitch) +
          i % static_cast<std::size_t>(d)] = dense[i];
    return all;
  };
  const std::vector<f8e4m3> q = padded(codes(kB * kS * kH * d, 1)), k = padded(codes(kB * kT * kG * d, 2)),
                            v = padded(codes(kB * kT * kG * d, 3));
  const std::vector<float> scales = {0.5f, 1.7f, 2.9f, 0.3f};
  const auto of = [&](const std::vector<f8e4m3>& all, std::int64_t tokens, std::int64_t first,
                      std::int64_t count, std::int64_t heads) {
    ConstView view = rooftile::view(all.data() + (part.batch * tokens + first) * heads * pitch,
                                    {part.batches, count, heads, d});
    view.stride[0] = tokens * heads * pitch, view.stride[1] = heads * pitch, view.stride[2] = pitch;
    return view;
  };
  const ConstView each = view(scales.data() + part.batch * kG, {part.batches, kG});
  const AttentionScaledInputs in{
      of(q, kS, part.first, part.queries, kH), of(k, kT, 0, kT, kG), of(v, kT, 0, kT, kG), each, each, each};
  const std::int64_t rows = part.batches * part.queries * kH;
  std::vector<bf16> y(static_cast<std::size_t>(rows * d));
  std::vector<float> lse(static_cast<std::size_t>(rows));
  const AttentionScaledOutputs out{view(y.data(), {part.batches, part.queries, kH, d}),
                                   view(lse.data(), {part.batches, kH, part.queries})};
  std::size_t bytes = 0;
  EXPECT_TRUE(attention_scaled_workspace(queue, in, out, bytes));
  std::vector<std::byte> memory(bytes + 64);
  void* at = memory.data();
  std::size_t room = memory.size();
  std::align(64, bytes, at, room);
  const Status status = attention_scaled(queue, in, out, options, {at, bytes});
  EXPECT_TRUE(status) << status.message();
  std::vector<std::uint32_t> all;
  for (const bf16 x : y) all.push_back(std::bit_cast<std::uint16_t>(x));
  for (const float x : lse) all.push_back(std::bit_cast<std::uint32_t>(x));
  return all;
}

TEST(AttentionScaled, GivesTheBitsOfMmaByWgmmaOnTheEmulatedDevice) {
  if (!kEmulatedIsBuilt) GTEST_SKIP() << "this build has no emulated device";
  const auto by = [](int architecture, std::int64_t d) {
    return results(Queue::emulated({.architecture = architecture, .threads = 2}), d, {.causal = true});
  };
  for (const std::int64_t d : {64, 72}) EXPECT_EQ(by(80, d), by(90, d)) << "heads of " << d;
}

/// A row by wgmma_f8 has its bits whatever tile and batch it is in, and however far apart heads are.
TEST(AttentionScaled, GivesARowItsBitsByF8OnTheEmulatedDevice) {
  if (!kEmulatedIsBuilt) GTEST_SKIP() << "this build has no emulated device";
  const Queue queue = Queue::emulated({.threads = 1}), other = Queue::emulated({.threads = 2, .seed = 5});
  for (const std::int64_t d : {64, 128}) {
    const AttentionScaledOptions full{.variant = "wgmma_f8"}, causal{.causal = true, .variant = "wgmma_f8"};
    EXPECT_EQ(results(queue, d, causal), results(other, d, causal, {.apart = 16})) << "heads of " << d;
    const std::vector<std::uint32_t> all = results(queue, d, full);
    const Part part{.batch = 1, .batches = 1, .first = 37, .queries = 90};
    const std::vector<std::uint32_t> some = results(other, d, full, part);
    const std::int64_t begin = ((part.batch * kS + part.first) * kH) * d, count = part.queries * kH * d;
    EXPECT_TRUE(std::equal(some.begin(), some.begin() + count, all.begin() + begin)) << "heads of " << d;
    for (std::int64_t h = 0; h < kH; ++h)
      for (std::int64_t i = 0; i < part.queries; ++i)
        EXPECT_EQ(some[static_cast<std::size_t>(count + h * part.queries + i)],
                  all[static_cast<std::size_t>(kB * kS * kH * d + (kH + h) * kS + part.first + i)]);
  }
}

}  // namespace
}  // namespace rooftile
