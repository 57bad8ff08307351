// What the cases of rooftile/ops/gemm cannot say: on one GPU, wgmma gives the bits of mma, whatever its tile.
#include "rooftile/ops/gemm/gemm.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <vector>

#include "rooftile/core/convert.h"
#include "rooftile/ops/gemm/gemm.hopper_plan.h"

namespace rooftile {
namespace {

/// By the build's word, not by trying: a device that fails must not pass for one that is absent.
constexpr bool kEmulatedIsBuilt = ROOFTILE_TEST_EMULATED;

struct Product {
  std::int64_t batch, m, k, n;
  int turned = 0;  ///< 1: a is kept by columns, 2: b is, 3: both
  GemmOptions options = {};
  bool widened = false;  ///< y is f32
};

template <class T>
ConstView matrices(const T* data, std::int64_t batch, std::int64_t rows, std::int64_t columns, bool turned) {
  ConstView v = turned ? view(data, {batch, columns, rows}) : view(data, {batch, rows, columns});
  if (turned) std::swap(v.shape[1], v.shape[2]), std::swap(v.stride[1], v.stride[2]);
  return v;
}

template <class T>
T number(double x) {
  if constexpr (std::is_integral_v<T>)
    return static_cast<T>(x);
  else
    return from_double<T>(x);
}

/// T: of a and b; Narrow: of y, where it is not widened.
template <class T, class Narrow = T>
void gives_the_same_bits(const Queue& queue, const Product& p) {
  std::mt19937 random(static_cast<unsigned>(p.m * 1000 + p.n * 10 + p.turned));
  std::normal_distribution<float> normal;
  const auto numbers = [&](std::int64_t count) {
    std::vector<T> list(static_cast<std::size_t>(count));
    for (T& x : list)
      x = number<T>(std::is_integral_v<T> ? double(random() % 256) - 128 : double(normal(random)));
    return list;
  };
  const std::vector<T> a = numbers(p.batch * p.m * p.k), b = numbers(p.batch * p.k * p.n);
  const ConstView of_a = matrices(a.data(), p.batch, p.m, p.k, p.turned & 1);
  const ConstView of_b = matrices(b.data(), p.batch, p.k, p.n, p.turned & 2);
  const std::size_t size = static_cast<std::size_t>(p.batch * p.m * p.n);
  std::vector<float> wide[2];
  std::vector<Narrow> narrow[2];
  const char* const variants[] = {"wgmma", "mma"};
  for (int i = 0; i < 2; ++i) {
    wide[i].assign(size, -7);
    narrow[i].assign(size, number<Narrow>(-7));
    const View y =
        p.widened ? view(wide[i].data(), {p.batch, p.m, p.n}) : view(narrow[i].data(), {p.batch, p.m, p.n});
    GemmOptions options = p.options;
    options.variant = variants[i];
    const Status s = gemm(queue, {of_a, of_b}, y, options);
    ASSERT_TRUE(s) << s.message();
  }
  const std::string what = std::to_string(p.batch) + "x" + std::to_string(p.m) + "x" + std::to_string(p.k) +
                           "x" + std::to_string(p.n) + ", turned " + std::to_string(p.turned);
  EXPECT_EQ(std::memcmp(wide[0].data(), wide[1].data(), size * 4), 0) << what;
  EXPECT_EQ(std::memcmp(narrow[0].data(), narrow[1].data(), size * sizeof(Narrow)), 0) << what;
}

TEST(Gemm, GivesTheBitsOfMmaByWgmmaOnTheEmulatedDevice) {
  if (!kEmulatedIsBuilt) GTEST_SKIP() << "this build has no emulated device";
  for (const int threads : {1, 2}) {  // as many multiprocessors, by which tiles and clusters are chosen
    const Queue queue = Queue::emulated({.threads = threads});
    ASSERT_TRUE(queue.status()) << queue.status().message();
    for (int turned : {0, 1, 2, 3}) {
      gives_the_same_bits<bf16>(queue, {1, 200, 136, 264, turned});
      gives_the_same_bits<bf16>(queue, {1, 264, 520, 72, turned});  // more slices than a ring holds
      gives_the_same_bits<bf16>(queue, {1, 256, 80, 512, turned});
      gives_the_same_bits<bf16>(queue, {1, 200, 72, 192, turned});
    }
    for (std::int64_t rows : {1, 8, 9, 17, 33, 64})
      for (int turned : {0, 2}) gives_the_same_bits<bf16>(queue, {1, rows, 1096, 104, turned});
    gives_the_same_bits<bf16>(queue, {3, 136, 64, 80, 0, {.alpha = 0.7}});
    gives_the_same_bits<bf16>(queue,
                              {2, 70, 64, 136, 0, {.alpha = -2, .activation = GemmActivation::silu}, true});
    gives_the_same_bits<bf16>(queue, {2, 5, 72, 40, 2, {.activation = GemmActivation::gelu}});
    // Along K alone; each width of a tile, and few rows.
    for (const Product& p :
         {Product{1, 200, 528, 264, 2}, Product{1, 256, 80, 512, 2}, Product{1, 200, 80, 192, 2},
          Product{1, 264, 1040, 72, 2}, Product{2, 5, 64, 40, 2}, Product{1, 33, 1104, 104, 2},
          Product{1, 16, 2064, 72, 2}}) {
      gives_the_same_bits<std::int8_t, std::int32_t>(queue, p);
      gives_the_same_bits<tf32>(queue, p);
    }
    gives_the_same_bits<tf32>(queue,
                              {2, 70, 64, 136, 2, {.alpha = -2, .activation = GemmActivation::silu}, true});
  }
}

TEST(Gemm, ChoosesTilesThatFillAGpu) {
  using gemm_gpu::hopper_plan;
  const auto is = [](const gemm_gpu::HopperPlan& p, int height, int width, int cluster) {
    EXPECT_EQ(p.height, height);
    EXPECT_EQ(p.width, width);
    EXPECT_EQ(p.cluster, cluster);
  };
  is(hopper_plan(8192, 8192, 1, true, true, 132), 128, 256, 2);
  is(hopper_plan(2048, 2048, 1, true, true, 132), 128, 256, 1);  // one wave
  is(hopper_plan(512, 4096, 1, true, true, 132), 128, 128, 1);
  is(hopper_plan(16, 4096, 1, true, true, 132), 16, 32, 1);
  is(hopper_plan(16, 4096, 1, true, false, 132), 16, 64, 1);
  is(hopper_plan(16, 4096, 1, false, true, 132), 128, 64, 1);
  // Of the shapes above, so that each tile is among them.
  is(hopper_plan(264, 72, 1, true, true, 1), 128, 128, 1);
  is(hopper_plan(200, 192, 1, true, true, 1), 128, 192, 1);
  is(hopper_plan(256, 512, 1, true, true, 1), 128, 256, 1);
  is(hopper_plan(256, 512, 1, true, true, 2), 128, 256, 2);
  is(hopper_plan(200, 264, 1, true, true, 2), 128, 64, 2);
}

}  // namespace
}  // namespace rooftile
