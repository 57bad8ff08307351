// Hopper's asynchronous units on the emulated device: boxes and swizzles against their definition, wgmma
// against the tensor core's, a product by a whole pipeline, and the sentences for mistakes planted into it.
#include "tests/emulated/hopper.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "rooftile/backend/emulated/controls.h"
#include "rooftile/backend/emulated/tensor_core.h"
#include "rooftile/core/convert.h"

namespace rooftile::emulated::test {
namespace {
using cuda::make_tensor_map;
using cuda::Swizzle;
using cuda::TensorMap;
using device::MatrixType;

constexpr Swizzle kSwizzles[] = {Swizzle::kNone, Swizzle::k32, Swizzle::k64, Swizzle::k128};

/// Memory that the copy engine takes: aligned, on the heap.
template <class T>
class Array {
 public:
  explicit Array(std::size_t n, T value = {}) : words_(n * sizeof(T) / 16 + 2) {
    std::fill_n(data(), n, value);
  }
  T* data() { return reinterpret_cast<T*>((reinterpret_cast<std::uintptr_t>(words_.data()) + 15) / 16 * 16); }
  T& operator[](std::size_t i) { return data()[i]; }

 private:
  struct Word {
    std::uint64_t half[2];
  };
  std::vector<Word> words_;
};

Geometry block_of(unsigned threads, std::size_t shared = 0) {
  Geometry g;
  g.block = dim3(threads);
  g.dynamic_shared = shared;
  return g;
}
/// What the checks found, too; the first of it.
std::string finding() {
  std::string first;
  Finding found[16];
  while (const std::size_t count = controls().take_findings(found, 16))
    if (first.empty()) first = count > 0 ? found[0].sentence : "";
  return first;
}

TEST(TensorMaps, AreRefusedInWords) {
  Array<std::uint16_t> data(64 * 64);
  TensorMap map;
  const auto refusal = [&](void* at, int bytes, cuda::MapDimension x, cuda::MapDimension y, Swizzle s) {
    return std::string(make_tensor_map(map, "gemm", at, bytes, {x, y}, s).message());
  };
  const cuda::MapDimension row{64, 2, 64}, rows{64, 128, 64};
  EXPECT_EQ(refusal(data.data(), 2, row, rows, Swizzle::k128), "");
  EXPECT_NE(refusal(data.data() + 1, 2, row, rows, Swizzle::k128).find("aligned to 16 bytes"),
            std::string::npos);
  EXPECT_NE(refusal(data.data(), 3, row, rows, Swizzle::k128).find("1, 2, 4 or 8 bytes, not 3"),
            std::string::npos);
  EXPECT_NE(refusal(data.data(), 2, row, {64, 134, 64}, Swizzle::k128).find("a multiple of 16 bytes"),
            std::string::npos);
  EXPECT_NE(refusal(data.data(), 2, {64, 4, 64}, rows, Swizzle::k128).find("an element's size, not 4"),
            std::string::npos);
  EXPECT_NE(refusal(data.data(), 2, {64, 2, 128}, rows, Swizzle::k128).find("128-byte swizzle"),
            std::string::npos);
  EXPECT_NE(refusal(data.data(), 2, row, {64, 128, 257}, Swizzle::k128).find("in dimension 1 not 257"),
            std::string::npos);
  EXPECT_NE(refusal(data.data(), 2, {0, 2, 64}, rows, Swizzle::k128).find("not 0"), std::string::npos);
  EXPECT_NE(refusal(data.data(), 2, {64, 2, 4}, rows, Swizzle::kNone).find("multiple of 16 bytes, not 8"),
            std::string::npos);
  EXPECT_EQ(refusal(data.data(), 3, row, rows, Swizzle::k128).rfind("gemm: ", 0), 0u);
}

/// A tensor of five dimensions at most, by bytes: what stands at its coordinates, or 0 outside.
TEST(Boxes, LieAsTheirSwizzleSays) {
  constexpr std::int64_t sizes[] = {40, 9, 3, 2, 2};
  constexpr int box[] = {0, 16, 2, 2, 1};
  constexpr int corners[][5] = {{0, 0, 0, 0, 0}, {-8, -3, 1, 0, 1}, {24, 5, 2, 1, 0}, {100, 0, 0, 0, 0}};
  for (const int element : {1, 2, 4, 8})
    for (const Swizzle swizzle : kSwizzles)
      for (int rank = 1; rank <= 5; ++rank) {
        const int row = static_cast<int>(cuda::row_bytes(swizzle));
        std::int64_t strides[6] = {element, (sizes[0] * element + 15) / 16 * 16 + 16};
        for (int i = 2; i < 6; ++i) strides[i] = strides[i - 1] * sizes[i - 1];
        Array<std::uint8_t> data(static_cast<std::size_t>(strides[rank]) + 64);
        for (std::int64_t i = 0; i < strides[rank]; ++i)
          data[static_cast<std::size_t>(i)] = static_cast<std::uint8_t>(i * 37 % 251 + 1);
        std::vector<cuda::MapDimension> d;
        unsigned bytes = static_cast<unsigned>(row);
        for (int i = 0; i < rank; ++i) {
          d.push_back({sizes[i], strides[i], i == 0 ? row / element : box[i]});
          if (i > 0) bytes *= static_cast<unsigned>(box[i]);
        }
        TensorMap map;
        const auto make = [&](std::initializer_list<cuda::MapDimension> list) {
          return make_tensor_map(map, "boxes", data.data(), element, list, swizzle);
        };
        const Status made = rank == 1   ? make({d[0]})
                            : rank == 2 ? make({d[0], d[1]})
                            : rank == 3 ? make({d[0], d[1], d[2]})
                            : rank == 4 ? make({d[0], d[1], d[2], d[3]})
                                        : make({d[0], d[1], d[2], d[3], d[4]});
        ASSERT_TRUE(made) << made.message();
        for (const auto& at : corners) {
          Array<std::byte> out(bytes);
          const Status s = launch_of::copy_box(block_of(64, 16384), {}, map, rank, at, bytes, out.data());
          ASSERT_TRUE(s) << s.message();
          for (unsigned i = 0; i < bytes; ++i) {
            unsigned rest = i / static_cast<unsigned>(row);
            const unsigned line = rest, piece = i % static_cast<unsigned>(row) / 16;
            std::int64_t x = at[0] + static_cast<std::int64_t>(i) % row / element;
            bool inside = x >= 0 && x < sizes[0];
            std::int64_t place = x * element + i % static_cast<unsigned>(element);
            for (int n = 1; n < rank; ++n) {
              x = at[n] + static_cast<std::int64_t>(rest) % box[n];
              rest /= static_cast<unsigned>(box[n]);
              inside &= x >= 0 && x < sizes[n];
              place += x * strides[n];
            }
            const unsigned moved = swizzle == Swizzle::k128  ? piece ^ line % 8
                                   : swizzle == Swizzle::k64 ? piece ^ line / 2 % 4
                                   : swizzle == Swizzle::k32 ? piece ^ line / 4 % 2
                                                             : piece;
            const auto got =
                static_cast<unsigned>(out[line * static_cast<unsigned>(row) + moved * 16 + i % 16]);
            const unsigned expected = inside ? data[static_cast<std::size_t>(place)] : 0;
            ASSERT_EQ(got, expected) << "byte " << i << ", rank " << rank << ", element " << element << ", "
                                     << row << " bytes";
          }
        }
      }
  EXPECT_EQ(finding(), "");
}

std::mt19937 generator(5);
float draw() { return static_cast<float>(static_cast<int>(generator() % 255) - 127) / 64; }
std::uint16_t bits(bool f16_type, float x) {
  return f16_type ? from_double<f16>(static_cast<double>(x)).bits
                  : from_double<bf16>(static_cast<double>(x)).bits;
}

using launch_of::Element;
MatrixType matrix_type(Element type) {
  constexpr MatrixType types[] = {MatrixType::kBf16, MatrixType::kF16,  MatrixType::kTf32,
                                  MatrixType::kI8,   MatrixType::kE4m3, MatrixType::kE5m2};
  return types[static_cast<int>(type)];
}
/// Of i8 a whole number, -128 to 126.
float put_drawn(Element type, std::uint8_t* to) {
  float v = type == Element::kI8 ? std::floor(draw() * 64) - 1 : draw();
  const auto store = [&](auto value) { std::memcpy(to, &value, sizeof value); };
  const auto store_f8 = [&](auto value) {
    store(value);
    v = to_float(value);
  };
  if (type == Element::kI8)
    store(static_cast<std::int8_t>(v));
  else if (type == Element::kE4m3)
    store_f8(from_double<f8e4m3>(static_cast<double>(v)));
  else if (type == Element::kE5m2)
    store_f8(from_double<f8e5m2>(static_cast<double>(v)));
  else if (type == Element::kTf32)
    store(from_double<tf32>(static_cast<double>(v)));
  else
    store(bits(type == Element::kF16, v));
  return v;
}

/// 50 of A's 64 rows exist: the others are zeros.
void check_wgmma(Element type, Element b_type, Swizzle swizzle, bool a_mn = false, bool b_mn = false) {
  const int size = tensor_core::element_bytes(matrix_type(type)), depth = 32 / size, rows = 50;
  const bool f8 = type == Element::kE4m3 || type == Element::kE5m2;
  const int n = type == Element::kF16 ? 256 : f8 ? 128 : 48;
  const int row_bytes = static_cast<int>(cuda::row_bytes(swizzle)), width = row_bytes / size;
  const int pitch = 512;  // bytes
  const int first_k =
      row_bytes > 32 ? 32 : 0;  // of a K-major row that is longer, the second 32 are multiplied
  Array<std::uint8_t> a(256 * pitch), b(256 * pitch);
  std::vector<std::array<float, 32>> x(64), y(static_cast<std::size_t>(n));
  const auto fill = [&](Array<std::uint8_t>& to, std::vector<std::array<float, 32>>& values, int extent,
                        Element its, bool mn) {
    for (int k = 0; k < depth; ++k)
      for (int i = 0; i < extent; ++i)
        values[static_cast<std::size_t>(i)][static_cast<std::size_t>(k)] =
            put_drawn(its, to.data() + (mn ? k * pitch + i * size : i * pitch + k * size + first_k));
  };
  fill(a, x, rows, type, a_mn);
  fill(b, y, n, b_type, b_mn);
  TensorMap a_map, b_map;
  const int whole = 128 / size;  // of k, all that is there
  ASSERT_TRUE(make_tensor_map(
      a_map, "a", a.data(), size,
      {{a_mn ? rows : whole, size, width}, {a_mn ? depth : rows, pitch, a_mn ? depth : 64}}, swizzle));
  ASSERT_TRUE(make_tensor_map(b_map, "b", b.data(), size,
                              {{b_mn ? n : whole, size, width}, {b_mn ? depth : n, pitch, b_mn ? depth : n}},
                              swizzle));
  std::vector<float> out(static_cast<std::size_t>(64 * n));
  const Status s =
      launch_of::one_wgmma(block_of(128, 65536), {}, type, b_type, a_map, b_map, swizzle,
                           {a_mn, 64, a_mn ? 0 : first_k}, {b_mn, n, b_mn ? 0 : first_k}, out.data());
  ASSERT_TRUE(s) << s.message();
  for (int i = 0; i < 64; ++i)
    for (int j = 0; j < n; ++j) {
      const float *const row = x[static_cast<std::size_t>(i)].data(), *const column =
                                                                          y[static_cast<std::size_t>(j)]
                                                                              .data();
      const float got = out[static_cast<std::size_t>(i * n + j)];
      if (type == Element::kI8) {
        ASSERT_EQ(std::bit_cast<std::int32_t>(got),
                  static_cast<int>(std::inner_product(row, row + 32, column, 0.f)))
            << i << ", " << j << ", swizzle of " << row_bytes << " bytes";
        continue;
      }
      ASSERT_EQ(got, tensor_core::step(row, column, 0, tensor_core::model(matrix_type(type))))
          << i << ", " << j << ", swizzle of " << row_bytes << " bytes, A " << a_mn << ", B " << b_mn;
    }
  EXPECT_EQ(finding(), "");
}
TEST(Wgmma, IsItsDefinitionInEverySwizzleAndMajor) {
  for (const Swizzle swizzle : kSwizzles) {
    for (const bool a_mn : {false, true})
      for (const bool b_mn : {false, true}) check_wgmma(Element::kBf16, Element::kBf16, swizzle, a_mn, b_mn);
    for (const Element type : {Element::kTf32, Element::kI8, Element::kE4m3, Element::kE5m2})
      check_wgmma(type, type, swizzle);
    check_wgmma(Element::kE4m3, Element::kE5m2, swizzle);
    check_wgmma(Element::kE5m2, Element::kE4m3, swizzle);
  }
  check_wgmma(Element::kF16, Element::kF16, Swizzle::k128);
}

TEST(Wgmma, TakesRegisters) {
  Array<std::uint16_t> b(16 * 64);
  std::vector<std::uint32_t> words(64 * 8);
  std::vector<std::array<float, 16>> x(64), y(64);
  for (std::size_t k = 0; k < 16; ++k)
    for (std::size_t i = 0; i < 64; ++i) {
      x[i][k] = draw(), y[i][k] = draw();
      words[i * 8 + k / 2] |= std::uint32_t{bits(false, x[i][k])} << 16 * (k % 2);
      b[k * 64 + i] = bits(false, y[i][k]);
    }
  TensorMap map;
  ASSERT_TRUE(make_tensor_map(map, "b", b.data(), 2, {{64, 2, 64}, {16, 128, 16}}, Swizzle::k128));
  std::vector<float> out(64 * 64);
  Status s = launch_of::registers_wgmma(block_of(128, 2048), {}, words.data(), map, false, out.data());
  ASSERT_TRUE(s) << s.message();
  for (std::size_t i = 0; i < 64; ++i)
    for (std::size_t j = 0; j < 64; ++j)
      ASSERT_EQ(out[i * 64 + j],
                tensor_core::step(x[i].data(), y[j].data(), 1, tensor_core::model(MatrixType::kBf16)));
  EXPECT_EQ(finding(), "");
  s = launch_of::registers_wgmma(block_of(128, 2048), {}, words.data(), map, true, out.data());
  EXPECT_NE(std::string(s.message()).find("thread 77 changed register 2 of A"), std::string::npos)
      << s.message();
  finding();
}

TEST(Mbarriers, PhasesGoByParity) {
  std::vector<unsigned> seen(3);
  const Status s = launch_of::phases(block_of(64), {}, seen.data());
  ASSERT_TRUE(s) << s.message();
  EXPECT_EQ(seen[0], 2u);  // one of each warp
  EXPECT_GE(seen[1], 1u);
  EXPECT_EQ(seen[2], 3u);
  finding();  // thread 32 reads while thread 0 may write: a race, and told by the checks
}

struct Problem {
  int m, n, k;
  Array<std::uint16_t> a, b, c;
  TensorMap a_map, b_map, c_map;
  Problem(int rows, int columns, int depth)
      : m(rows),
        n(columns),
        k(depth),
        a(static_cast<std::size_t>(m * k)),
        b(static_cast<std::size_t>(n * k)),
        c(static_cast<std::size_t>(m * n), 0x7fff) {
    for (int i = 0; i < m * k; ++i) a[static_cast<std::size_t>(i)] = bits(false, draw());
    for (int i = 0; i < n * k; ++i) b[static_cast<std::size_t>(i)] = bits(false, draw());
    const auto make = [](TensorMap& map, Array<std::uint16_t>& x, int rows_of_x, int columns_of_x, int box) {
      const Status s =
          make_tensor_map(map, "product", x.data(), 2,
                          {{columns_of_x, 2, 64}, {rows_of_x, columns_of_x * 2, box}}, Swizzle::k128);
      EXPECT_TRUE(s) << s.message();
    };
    make(a_map, a, m, k, 128);
    make(b_map, b, n, k, 64);
    make(c_map, c, m, n, 16);
  }
  std::string run(Bug bug, std::uint64_t seed = 0) {
    Options options;
    options.seed = seed;
    return launch_of::product({}, options, a_map, b_map, c_map, n, k, bug).message();
  }
  float value(Array<std::uint16_t>& x, int i) {
    return std::bit_cast<float>(std::uint32_t{x[static_cast<std::size_t>(i)]} << 16);
  }
  /// One ascending chain of steps of 16, in every `step`-th row.
  void check(int step) {
    for (int i = 0; i < m; i += step)
      for (int j = 0; j < n; ++j) {
        float sum = 0;
        for (int x = 0; x < k; x += 16) {
          float u[16] = {}, v[16] = {};
          for (int q = 0; q < 16 && x + q < k; ++q)
            u[q] = value(a, i * k + x + q), v[q] = value(b, j * k + x + q);
          sum = tensor_core::step(u, v, sum, tensor_core::model(MatrixType::kBf16));
        }
        ASSERT_EQ(c[static_cast<std::size_t>(i * n + j)], bits(false, sum)) << i << ", " << j;
      }
  }
};

TEST(Pipeline, IsTheProduct) {
  Problem p(256, 256, 512);
  ASSERT_EQ(p.run(Bug::kNone), "");
  p.check(37);
  EXPECT_EQ(finding(), "");
}
TEST(Pipeline, LeavesWhatLiesOutside) {
  for (const std::uint64_t seed : {0, 1, 2, 3}) {
    Problem p(200, 136, 264);
    ASSERT_EQ(p.run(Bug::kNone, seed), "");
    p.check(seed == 0 ? 19 : 67);
    EXPECT_EQ(finding(), "");
  }
}

struct Planted {
  Bug bug;
  const char* sentences[2];  // one of which it says
  bool in_any_order = true;  // else where threads happen to run so
};
class Mistakes : public ::testing::TestWithParam<Planted> {};
TEST_P(Mistakes, EndWithASentence) {
  for (const std::uint64_t seed : {0, 7}) {
    Problem p(256, 128, 512);
    const std::string said = p.run(GetParam().bug, seed);
    bool expected = false;
    for (const char* sentence : GetParam().sentences)
      expected |= sentence && said.find(sentence) != std::string::npos;
    if (seed == 0)
      EXPECT_TRUE(expected) << said;
    else if (GetParam().in_any_order)
      EXPECT_NE(said, "") << "with seed " << seed;
    EXPECT_EQ(finding() != "", controls().checked && said != "");
  }
}
INSTANTIATE_TEST_SUITE_P(
    Planted, Mistakes,
    ::testing::Values(
        Planted{Bug::kNoFullWait, {"no wait at its mbarrier", "nobody had written it when"}},
        Planted{Bug::kConsumersParity, {"no wait at its mbarrier, or the wrong parity"}},
        Planted{Bug::kProducersParity, {"of 4 arrivals missing"}},
        Planted{Bug::kNoEmptyWait, {"one more arrival at an mbarrier", "has yet to"}},
        Planted{Bug::kReleasedBeforeWait, {"the slot was given back before the wait for the wgmma"}},
        Planted{Bug::kOneGroupTooMany, {"the slot was given back before the wait for the wgmma"}},
        Planted{Bug::kExpectsABoxLess, {"expect_tx is too small"}},
        Planted{Bug::kExpects16Less, {"16 bytes more came to the mbarrier"}},
        Planted{Bug::kExpects16More, {"16 of 32784 bytes missing, 0 on the way"}},
        Planted{Bug::kNoProxyFence, {"no fence_proxy_async stands between thread"}},
        Planted{Bug::kSwizzle, {"the descriptor of B has a 64-byte swizzle"}},
        Planted{Bug::kStride, {"names places twice"}}, Planted{Bug::kNoCommit, {"no wgmma_commit"}},
        Planted{Bug::kNoLastWait, {"reads an accumulator that a wgmma has yet to write"}},
        Planted{Bug::kNoWgmmaFence, {"no wgmma_fence stands between"}},
        Planted{Bug::kToFirstBlock, {"bytes missing, 0 on the way", "bytes more came"}},
        Planted{Bug::kToOwnBlock, {"8192 of 32768 bytes missing, 0 on the way"}},
        Planted{Bug::kBeyondCluster, {"mask 0x7, in a cluster of 2"}},
        Planted{Bug::kOneSliceTooFar, {"more is loaded than used", "deadlock"}},
        Planted{Bug::kStoresLeft, {"ended, and its store of"}},
        Planted{Bug::kBufferUsedAgain, {"writes shared memory that a store"}},
        Planted{Bug::kNoClusterBarrierAtEnd, {"which has ended"}, false},
        Planted{Bug::kNoClusterBarrierAtStart,
                {"where no mbarrier was initialised", "was not initialised"},
                false},
        Planted{Bug::kNoInitFence, {"no fence_mbarrier_init stands between"}},
        Planted{Bug::kTooManyRegisters, {"more for its warp, and the block has"}},
        Planted{Bug::kRegistersNotGiven, {"more for its warp, and the block has 0 free"}},
        Planted{Bug::kSumChanged, {"changed accumulator 5 before it waited"}},
        Planted{Bug::kEmptyCountsOneLess, {"has yet to read", "one more arrival"}, false},
        Planted{Bug::kEachThreadReleases, {"one more arrival at an mbarrier", "has yet to read"}}),
    [](const auto& planted) { return "bug" + std::to_string(static_cast<int>(planted.param.bug)); });

TEST(Pipeline, ChecksSeeWhoWritesWhatAWgmmaHasYetToRead) {
  if (!controls().checked) GTEST_SKIP() << "ordinary stores are seen by the checks alone";
  Problem p(256, 128, 512);
  p.run(Bug::kOperandOverwritten);
  const std::string said = finding();
  EXPECT_NE(said.find("thread 200 writes shared memory that a store or a wgmma"), std::string::npos) << said;
}

}  // namespace
}  // namespace rooftile::emulated::test
