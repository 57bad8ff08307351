// What the cases of rooftile/ops/gemm cannot say: on one GPU, wgmma gives the bits of mma, whatever its tile;
// a packed product gives gemm's, and refuses what is not its packed b.
#include "rooftile/ops/gemm/gemm.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "rooftile/core/convert.h"
#include "rooftile/core/view_of.h"
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
  if constexpr (std::is_arithmetic_v<T>)
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
      gives_the_same_bits<bf16>(queue, {1, 304, 72, 64, turned});
      gives_the_same_bits<bf16>(queue, {1, 104, 1096, 64, turned});  // two tiles of few rows, if A is along K
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
  is(hopper_plan(128, 4096, 1, true, true, 132), 64, 64, 1);  // two tiles of few rows, all at once
  is(hopper_plan(128, 8192, 1, true, true, 132), 128, 64, 1);
  // Of the shapes above, so that each tile is among them.
  is(hopper_plan(264, 72, 1, true, true, 1), 128, 128, 1);
  is(hopper_plan(200, 192, 1, true, true, 1), 128, 192, 1);
  is(hopper_plan(256, 512, 1, true, true, 1), 128, 256, 1);
  is(hopper_plan(256, 512, 1, true, true, 2), 128, 256, 2);
  is(hopper_plan(304, 64, 1, true, true, 2), 128, 64, 2);
  is(hopper_plan(104, 64, 1, true, true, 2), 64, 64, 1);
}

/// T: of a and b; Y: of y.
template <class T, class Y = T>
void gives_gemms_bits(const Queue& queue, std::int64_t m, std::int64_t k, std::int64_t n) {
  std::mt19937 random(static_cast<unsigned>(m * 1000 + n));
  std::normal_distribution<float> normal;
  const auto numbers = [&](std::int64_t count) {
    std::vector<T> list(static_cast<std::size_t>(count));
    for (T& x : list)
      x = number<T>(std::is_integral_v<T> ? double(random() % 256) - 128 : double(normal(random)));
    return list;
  };
  const std::vector<T> a = numbers(m * k), b = numbers(k * n);
  const ConstView of_a = view(a.data(), {m, k});
  const ConstView weight = view(b.data(), {k, n}, {1, k});  // as a Linear has it
  const std::int64_t size = gemm_packed_size(k, n);
  std::vector<T> packed(static_cast<std::size_t>(size));
  Status s = gemm_pack(queue, weight, view(packed.data(), {size}));
  ASSERT_TRUE(s) << s.message();
  std::vector<Y> expected(static_cast<std::size_t>(m * n)), y(expected.size());
  s = gemm(queue, {of_a, weight}, view(expected.data(), {m, n}));
  ASSERT_TRUE(s) << s.message();
  s = gemm_packed(queue, {of_a, view(std::as_const(packed).data(), {size})}, view(y.data(), {m, n}));
  ASSERT_TRUE(s) << s.message();
  EXPECT_EQ(std::memcmp(y.data(), expected.data(), y.size() * sizeof(Y)), 0)
      << name(weight.dtype) << " " << m << "x" << k << "x" << n;
}

TEST(GemmPacked, GivesTheBitsOfGemm) {
  for (const int threads : {1, 2}) {
    const Queue queue = Queue::cpu({.threads = threads});
    for (const auto& [m, k, n] : {std::array<std::int64_t, 3>{1, 300, 200},
                                  {5, 129, 33},
                                  {16, 260, 70},
                                  {17, 131, 64},
                                  {180, 130, 210}}) {
      gives_gemms_bits<double>(queue, m, k, n);
      gives_gemms_bits<float>(queue, m, k, n);
      gives_gemms_bits<tf32>(queue, m, k, n);
      gives_gemms_bits<f16>(queue, m, k, n);
      gives_gemms_bits<bf16>(queue, m, k, n);
      gives_gemms_bits<std::int8_t, std::int32_t>(queue, m, k, n);
    }
  }
}

// [gemm_pack]
/// A layer whose weight {N, K} is packed when it is made.
struct PackedLayer {
  std::int64_t k, n;
  std::vector<float> packed;

  Status load(const Queue& queue, const float* weight) {
    packed.resize(static_cast<std::size_t>(gemm_packed_size(k, n)));
    return gemm_pack(queue, view(weight, {k, n}, {1, k}), view(packed));
  }
  Status run(const Queue& queue, const float* x, std::int64_t rows, float* y) const {
    return gemm_packed(queue, {view(x, {rows, k}), view(packed)}, view(y, {rows, n}));
  }
};
// [/gemm_pack]

TEST(GemmPacked, IsALayersWeight) {
  const Queue queue = Queue::cpu();
  const std::vector<float> weight{1, 2, 3, 4, 5, 6}, x{1, 10, 100};
  std::vector<float> y(2);
  PackedLayer layer{3, 2, {}};
  ASSERT_TRUE(layer.load(queue, weight.data()));
  ASSERT_TRUE(layer.run(queue, x.data(), 1, y.data()));
  EXPECT_EQ(y, (std::vector<float>{321, 654}));
}

TEST(GemmPacked, RefusesWhatIsNotItsPackedB) {
  const Queue queue = Queue::cpu();
  const std::int64_t k = 24, n = 40, size = gemm_packed_size(k, n);
  std::vector<float> a(static_cast<std::size_t>(3 * n)), b(static_cast<std::size_t>(k * n), 1.0f),
      packed(static_cast<std::size_t>(size)), y(static_cast<std::size_t>(3 * n));
  const auto product = [&](std::int64_t its_k, std::int64_t its_n, ConstView of_packed) {
    return std::string(
        gemm_packed(queue, {view(std::as_const(a).data(), {3, its_k}), of_packed}, view(y.data(), {3, its_n}))
            .message());
  };
  const ConstView of_packed = view(std::as_const(packed).data(), {size});
  EXPECT_EQ(product(k, n, of_packed),
            "gemm_packed: packed does not begin with gemm_pack's header; pass what gemm_pack wrote of b");
  ASSERT_TRUE(gemm_pack(queue, view(std::as_const(b).data(), {k, n}), view(packed.data(), {size})));
  EXPECT_EQ(product(k, n, of_packed), "");
  EXPECT_EQ(product(n, k, of_packed),
            "gemm_packed: packed holds a b of 24x40 f32, this product's is 40x24 f32; pack that one");
  EXPECT_NE(product(k, n - 1, of_packed).find("P is 1024, must be 1000 = N*K + 64"), std::string::npos)
      << product(k, n - 1, of_packed);
  // Of another dtype with elements as long.
  const auto* other = reinterpret_cast<const tf32*>(packed.data());
  std::vector<tf32> of_tf32(static_cast<std::size_t>(3 * n));
  EXPECT_EQ(std::string(gemm_packed(queue, {view(std::as_const(of_tf32).data(), {3, k}), view(other, {size})},
                                    view(y.data(), {3, n}))
                            .message()),
            "gemm_packed: packed holds a b of 24x40 f32, this product's is 24x40 tf32; pack that one");
  packed[3] = 7;
  EXPECT_EQ(product(k, n, of_packed),
            "gemm_packed: packed does not begin with gemm_pack's header; pass what gemm_pack wrote of b");
}

TEST(GemmPacked, IsForCpusAlone) {
  if (!kEmulatedIsBuilt) GTEST_SKIP() << "this build has no emulated device";
  const Queue queue = Queue::emulated();
  std::vector<float> b(16), packed(80), y(16);
  const char* const words = "is for CPUs alone; on a GPU gemm reads b as it is, without packing: call gemm";
  const View of_packed = view(packed.data(), {80}), of_y = view(y.data(), {4, 4});
  EXPECT_EQ(std::string(gemm_pack(queue, view(std::as_const(b).data(), {4, 4}), of_packed).message()),
            std::string("gemm_pack: ") + words);
  EXPECT_EQ(
      std::string(gemm_packed(queue, {view(std::as_const(b).data(), {4, 4}), of_packed}, of_y).message()),
      std::string("gemm_packed: ") + words);
}

}  // namespace
}  // namespace rooftile
