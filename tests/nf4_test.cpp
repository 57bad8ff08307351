// What the cases of rooftile/ops/nf4 cannot say: gemm_nf4 has the bits of dequantize_nf4, then gemm, by each
// of its variants.
#include "rooftile/ops/nf4/nf4.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <vector>

#include "rooftile/core/convert.h"
#include "rooftile/ops/gemm/gemm.h"

namespace rooftile {
namespace {

/// By the build's word, not by trying: a device that fails must not pass for one that is absent.
constexpr bool kEmulatedIsBuilt = ROOFTILE_TEST_EMULATED;

template <class T>
T number(double x) {
  if constexpr (std::is_same_v<T, float>)
    return static_cast<float>(x);
  else
    return from_double<T>(x);
}

template <class T>
void has_gemms_bits(const Queue& queue, std::int64_t m, std::int64_t k, std::int64_t n, std::int64_t block,
                    std::initializer_list<const char*> variants) {
  const auto count = [](std::int64_t a, std::int64_t b = 1) { return static_cast<std::size_t>(a * b); };
  std::mt19937 random(static_cast<unsigned>(m * 1000 + k + n));
  std::normal_distribution<double> normal;
  std::vector<T> x(count(m, k)), bias(count(n)), w(count(n, k)), expected(count(m, n)), y(count(m, n));
  std::vector<std::uint8_t> packed(count(n * k + 1) / 2);
  std::vector<float> absmax(count((n * k + block - 1) / block));
  for (T& v : x) v = number<T>(normal(random));
  for (T& v : bias) v = number<T>(normal(random));
  for (std::uint8_t& v : packed) v = static_cast<std::uint8_t>(random());
  for (float& v : absmax) v = static_cast<float>(0.01 + normal(random) * normal(random));
  const auto bytes = static_cast<std::int64_t>(packed.size()),
             blocks = static_cast<std::int64_t>(absmax.size());
  const ConstView packed_view = view(packed.data(), {bytes}), absmax_view = view(absmax.data(), {blocks}),
                  x_view = view(x.data(), {m, k}), bias_view = view(bias.data(), {n});

  Status s = dequantize_nf4(queue, packed_view, absmax_view, view(w.data(), {n, k}), {.block = block});
  ASSERT_TRUE(s) << s.message();
  ConstView turned = view(w.data(), {n, k});
  std::swap(turned.shape[0], turned.shape[1]);
  std::swap(turned.stride[0], turned.stride[1]);
  s = gemm(queue, {x_view, turned, {}, bias_view}, view(expected.data(), {m, n}));
  ASSERT_TRUE(s) << s.message();
  const GemmNf4Inputs in{x_view, packed_view, absmax_view, bias_view};
  std::size_t room = 0;
  s = gemm_nf4_workspace(queue, in, view(y.data(), {m, n}), {block}, room);
  ASSERT_TRUE(s) << s.message();
  struct alignas(64) Line {
    std::byte bytes[64];
  };
  std::vector<Line> workspace((room + sizeof(Line) - 1) / sizeof(Line), Line{});
  for (const char* variant : variants) {
    std::fill(y.begin(), y.end(), number<T>(-7));
    s = gemm_nf4(queue, in, view(y.data(), {m, n}), {block, variant}, {workspace.data(), room});
    ASSERT_TRUE(s) << s.message();
    EXPECT_EQ(std::memcmp(y.data(), expected.data(), y.size() * sizeof(T)), 0)
        << (variant ? variant : "automatic") << ": " << m << "x" << k << "x" << n << ", blocks of " << block;
  }
}

TEST(Nf4, MultipliesWithGemmsBits) {
  for (const int threads : {1, 3}) {
    const Queue queue = Queue::cpu({.threads = threads});
    for (std::int64_t m : {1, 2, 11, 12, 13, 170})
      for (std::int64_t k : {1, 33, 64, 544}) {
        has_gemms_bits<float>(queue, m, k, 70, 64, {nullptr});
        has_gemms_bits<f16>(queue, m, k, 33, 32, {nullptr});
        has_gemms_bits<bf16>(queue, m, k, 200, 128, {nullptr});
      }
  }
}

TEST(Nf4, MultipliesWithGemmsBitsOnTheEmulatedDevice) {
  if (!kEmulatedIsBuilt) GTEST_SKIP() << "this build has no emulated device";
  for (const int threads : {1, 2}) {  // as many multiprocessors, by which tiles are chosen
    const Queue queue = Queue::emulated({.threads = threads});
    ASSERT_TRUE(queue.status()) << queue.status().message();
    for (std::int64_t m : {1, 9, 16, 17, 64})
      for (std::int64_t k : {32, 544, 1056}) has_gemms_bits<bf16>(queue, m, k, 70, 64, {"few_rows", "mma"});
    for (std::int64_t m : {3, 65, 200})
      for (std::int64_t k : {33, 96, 130}) {
        has_gemms_bits<bf16>(queue, m, k, 200, 32, {nullptr, "mma"});
        if (m > 64) has_gemms_bits<bf16>(queue, m, k, 70, 32, {"dequantised"});
        has_gemms_bits<float>(queue, m, k, 70, 64, {nullptr, "simt"});
      }
  }
}

}  // namespace
}  // namespace rooftile
