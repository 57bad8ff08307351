// What the cases of rooftile/ops/quantize cannot say: that rounding by chance has no bias, in each step of
// each format, and gives the same codes on every machine.
#include "rooftile/ops/quantize/quantize.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "rooftile/core/convert.h"

namespace rooftile {
namespace {

constexpr std::int64_t kNever = std::int64_t{1} << 62;
using Quantize = Status (*)(const Queue&, const QuantizeInputs&, View, View, const QuantizeOptions&);

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

struct Format {
  DType type;
  Quantize quantize;
  double (*number)(std::uint8_t);
  std::vector<float> between;  ///< of each kind of step: subnormal, normal, the last; of both signs
};
std::vector<Format> formats() {
  return {{DType::f8e4m3,
           quantize_f8e4m3,
           [](std::uint8_t c) { return double(to_float(f8e4m3{c})); },
           {0x1.8p-10f, 0x1p-13f, -0x1.1p-7f, 0x1.fcp-7f, 1.03f, -3.3f, 100.f, 447.f}},
          {DType::f8e5m2,
           quantize_f8e5m2,
           [](std::uint8_t c) { return double(to_float(f8e5m2{c})); },
           {0x1.8p-17f, 0x1p-20f, -0x1.1p-15f, 0x1.fcp-15f, 1.06f, -3.3f, 100.f, 57000.f}},
          {DType::i8,
           quantize_i8,
           [](std::uint8_t c) { return double(static_cast<std::int8_t>(c)); },
           {0.001f, -0.25f, 0.9f, 1.5f, -63.3f, 126.99f}}};
}

/// n times x, by its codes' bytes.
std::vector<std::uint8_t> codes_of(const Queue& queue, const Format& f, float x, std::size_t n,
                                   std::int64_t seed) {
  const std::vector<float> xs(n, x);
  std::vector<std::uint8_t> codes(n);
  const float one = 1;
  float scale = 0;
  const auto size = static_cast<std::int64_t>(n);
  View to = view(reinterpret_cast<std::int8_t*>(codes.data()), {1, size});
  to.dtype = f.type;
  const Status s = f.quantize(
      queue, {.x = view(xs.data(), {1, size}), .given = view(&one, {1, 1}), .seed = view(&seed, {1})}, to,
      view(&scale, {1, 1}), {.block = size});
  EXPECT_TRUE(s) << s.message();
  return codes;
}

/// The mean of n codes lies within six standard deviations of x, and only x's two neighbours occur.
TEST(QuantizeByChance, HasTheValueAsItsMean) {
  constexpr std::size_t kCount = 1 << 18;
  const Queue queue = Queue::cpu();
  for (const Format& f : formats())
    for (const float x : f.between) {
      double sum = 0, lower = INFINITY, upper = -INFINITY;
      for (const std::uint8_t code : codes_of(queue, f, x, kCount, 12345)) {
        const double number = f.number(code);
        sum += number;
        lower = std::fmin(lower, number);
        upper = std::fmax(upper, number);
      }
      const double step = upper - lower, rest = (double(x) - lower) / step;
      EXPECT_TRUE(lower < double(x) && double(x) < upper) << x;
      const double deviation = step * std::sqrt(rest * (1 - rest) / kCount);
      EXPECT_NEAR(sum / kCount, double(x), 6 * deviation) << x << ", " << name(f.type);
    }
}

TEST(QuantizeByChance, LeavesCodesAndWhatSaturates) {
  for (const Queue& queue : queues())
    for (const Format& f : formats())
      for (int c = 0; c < 256; ++c) {
        const double number = f.number(static_cast<std::uint8_t>(c));
        if (!std::isfinite(number) || number == -128) continue;
        for (const std::uint8_t code : codes_of(queue, f, static_cast<float>(number), 33, 7))
          ASSERT_EQ(f.number(code), number) << c;
      }
  for (const Queue& queue : queues())
    for (const Format& f : formats())
      for (const float x : {1e6f, -1e6f, INFINITY})
        for (const std::uint8_t code : codes_of(queue, f, x, 33, 7))
          ASSERT_EQ(f.number(code), std::copysign(f.type == DType::i8       ? 127
                                                  : f.type == DType::f8e4m3 ? 448
                                                                            : 57344,
                                                  x));
}

TEST(QuantizeByChance, GivesTheSameCodesOnEveryMachine) {
  for (const Format& f : formats())
    for (const float x : f.between) {
      const auto expected = codes_of(Queue::cpu(), f, x, 5003, -1);
      for (const Queue& queue : queues()) ASSERT_EQ(codes_of(queue, f, x, 5003, -1), expected) << x;
    }
}

/// A tensor's scale is that of one row with one block, and so are its codes.
TEST(QuantizeTensor, IsOneBlock) {
  constexpr std::int64_t kRows = 37, kColumns = 541;
  std::vector<float> x(kRows * kColumns);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = std::sin(0.37f * float(i)) * float(i % 911);
  const std::int64_t seed = 3;
  for (const Queue& queue : queues())
    for (const bool by_chance : {false, true}) {
      std::vector<std::int8_t> codes(x.size()), expected(x.size());
      float scale = 0, expected_scale = 0;
      const ConstView its_seed = by_chance ? ConstView(view(&seed, {1})) : ConstView{};
      ASSERT_TRUE(quantize_tensor_i8(queue, {.x = view(x.data(), {kRows, kColumns}), .seed = its_seed},
                                     view(codes.data(), {kRows, kColumns}), view(&scale, {1})));
      ASSERT_TRUE(quantize_i8(queue, {.x = view(x.data(), {1, kRows * kColumns}), .seed = its_seed},
                              view(expected.data(), {1, kRows * kColumns}), view(&expected_scale, {1, 1}),
                              {.block = kRows * kColumns}));
      ASSERT_EQ(scale, expected_scale);
      ASSERT_EQ(codes, expected);
    }
}

}  // namespace
}  // namespace rooftile
