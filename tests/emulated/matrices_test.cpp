// Matrix instructions on the emulated device: where the elements of a fragment lie, against loops over a
// matrix; the tensor core's arithmetic, against its definition in whole numbers; and what the checks say.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "rooftile/backend/emulated/controls.h"
#include "rooftile/backend/emulated/tensor_core.h"
#include "rooftile/core/convert.h"
#include "tests/emulated/matrices.h"

namespace rooftile::emulated::test {
namespace {
using device::MatrixType;
using launch_of::Type;

constexpr unsigned kTiles = 40;

struct Product {
  Type type;
  int depth;
  MatrixType matrix_type;
};
constexpr Product kProducts[] = {{Type::bf16, 16, MatrixType::kBf16},
                                 {Type::f16, 16, MatrixType::kF16},
                                 {Type::tf32, 8, MatrixType::kTf32}};

/// A value's bits in a format, and what they mean.
std::uint32_t bits_of(Type type, double v) {
  return type == Type::bf16  ? from_double<bf16>(v).bits
         : type == Type::f16 ? from_double<f16>(v).bits
                             : from_double<tf32>(v).bits;
}
void put(std::vector<unsigned>& words, Type type, std::size_t element, std::uint32_t bits) {
  if (type == Type::tf32)
    words[element] = bits;
  else
    reinterpret_cast<std::uint16_t*>(words.data())[element] = static_cast<std::uint16_t>(bits);
}

/// The definition: significands as whole numbers, shifted to the largest exponent and cut, summed, cut.
float by_definition(const float* a, const float* b, float c, int depth) {
  struct Part {
    __int128 significand;  // times 2^(exponent - 46)
    int exponent;
  };
  std::vector<Part> parts;
  const auto split = [](float v, int& exponent) {
    const auto bits = std::bit_cast<std::uint32_t>(v);
    const int field = static_cast<int>(bits >> 23 & 255);
    std::int64_t significand = bits & 0x7fffff;
    exponent = field == 0 ? -126 : field - 127;
    if (field != 0) significand |= 0x800000;
    while (significand != 0 && significand < 0x800000) significand *= 2, --exponent;
    return bits >> 31 != 0 ? -significand : significand;
  };
  int top = -100000;
  double special = 0;
  bool is_special = !std::isfinite(c);
  if (is_special) special += static_cast<double>(c);
  for (int k = 0; k < depth; ++k) {
    int ea, eb;
    const std::int64_t x = split(a[k], ea), y = split(b[k], eb);
    if (!std::isfinite(a[k]) || !std::isfinite(b[k])) {
      is_special = true;
      special += static_cast<double>(a[k]) * static_cast<double>(b[k]);
    } else if (x != 0 && y != 0) {
      parts.push_back({static_cast<__int128>(x) * y, ea + eb});
      top = std::max(top, ea + eb);
    }
  }
  if (is_special)
    return std::isnan(special) ? std::bit_cast<float>(0x7fffffffu) : static_cast<float>(special);
  int ec;
  if (const std::int64_t x = split(c, ec); x != 0) {
    parts.push_back({static_cast<__int128>(x) << 23, ec});
    top = std::max(top, ec);
  }
  if (parts.empty()) return 0;
  std::int64_t sum = 0;  // in units of 2^(top - 25)
  for (const Part& p : parts) {
    const int shift = 46 - 25 + (top - p.exponent);
    const __int128 size = p.significand < 0 ? -p.significand : p.significand;
    const auto kept = static_cast<std::int64_t>(shift > 120 ? 0 : size >> shift);
    sum += p.significand < 0 ? -kept : kept;
  }
  std::int64_t size = std::llabs(sum);
  int exponent = top - 25;
  while (size >= 1 << 24) size /= 2, ++exponent;
  while (exponent < -149) size /= 2, ++exponent;
  const double v = std::ldexp(static_cast<double>(size), exponent);
  return static_cast<float>(sum < 0 ? -v : v);
}

TEST(Matrices, FragmentsLieAsInAMatrix) {
  std::mt19937 random(1);
  for (const auto& [type, depth, matrix_type] : kProducts)
    for (const bool by_rows : {false, true}) {
      if (by_rows && type == Type::tf32) continue;
      const auto k_size = static_cast<std::size_t>(depth);
      std::vector<unsigned> a(kTiles * 128), b(kTiles * 64);
      std::vector<float> c(kTiles * 128), d(c.size());
      std::vector<int> x(kTiles * 16 * k_size), y(kTiles * 8 * k_size);
      for (std::size_t i = 0; i < x.size(); ++i) {
        x[i] = static_cast<int>(random() % 33) - 16;
        put(a, type, i, bits_of(type, x[i]));
      }
      for (std::size_t i = 0; i < y.size(); ++i) {
        y[i] = static_cast<int>(random() % 33) - 16;
        put(b, type, i, bits_of(type, y[i]));
      }
      for (float& v : c) v = static_cast<float>(random() % 1000);
      const Status s = launch_of::multiply({kTiles, 32}, {.seed = 7}, type, by_rows, a.data(), b.data(),
                                           c.data(), d.data());
      ASSERT_TRUE(s.ok()) << s.message();
      for (std::size_t t = 0; t < kTiles; ++t)
        for (std::size_t i = 0; i < 16; ++i)
          for (std::size_t j = 0; j < 8; ++j) {
            float sum = c[t * 128 + i * 8 + j];
            for (std::size_t k = 0; k < k_size; ++k)
              sum += static_cast<float>(x[(t * 16 + i) * k_size + k] *
                                        y[t * 8 * k_size + (by_rows ? k * 8 + j : j * k_size + k)]);
            ASSERT_EQ(d[t * 128 + i * 8 + j], sum)
                << int(type) << by_rows << " " << t << " " << i << " " << j;
          }
    }
}

/// Bytes of every value, the extreme ones often; sums from anywhere, which wrap.
TEST(Matrices, BytesAreWholeNumbers) {
  std::mt19937 random(3);
  std::vector<unsigned> a(kTiles * 128), b(kTiles * 64);
  std::vector<int> c(kTiles * 128), d(c.size());
  constexpr int kExtremes[] = {-128, 127, -1, 0};
  const auto any_byte = [&](std::size_t tile) {
    if (tile == 0) return -128;  // the largest sum: 32·2^14
    return tile % 2 ? kExtremes[random() % 4] : static_cast<int>(random() % 256) - 128;
  };
  auto* const x = reinterpret_cast<std::int8_t*>(a.data());
  auto* const y = reinterpret_cast<std::int8_t*>(b.data());
  for (std::size_t i = 0; i < 4 * a.size(); ++i) x[i] = static_cast<std::int8_t>(any_byte(i / 512));
  for (std::size_t i = 0; i < 4 * b.size(); ++i) y[i] = static_cast<std::int8_t>(any_byte(i / 256));
  for (std::size_t i = 0; i < c.size(); ++i)
    c[i] = i / 128 == 0 ? std::numeric_limits<int>::max() - static_cast<int>(i) * 5000
                        : static_cast<int>(random());
  const Status s =
      launch_of::multiply_bytes({kTiles, 32}, {.seed = 7}, a.data(), b.data(), c.data(), d.data());
  ASSERT_TRUE(s.ok()) << s.message();
  for (std::size_t t = 0; t < kTiles; ++t)
    for (std::size_t i = 0; i < 16; ++i)
      for (std::size_t j = 0; j < 8; ++j) {
        std::int64_t sum = c[t * 128 + i * 8 + j];
        for (std::size_t k = 0; k < 32; ++k) sum += x[t * 512 + i * 32 + k] * y[t * 256 + j * 32 + k];
        ASSERT_EQ(d[t * 128 + i * 8 + j], static_cast<int>(sum)) << t << " " << i << " " << j;
      }
}

TEST(Matrices, RowsAreLanesWords) {
  std::vector<unsigned> x(128), out(128), back(128);
  for (std::size_t i = 0; i < 256; ++i) put(x, Type::bf16, i, static_cast<std::uint32_t>(i * 257 % 65521));
  const auto element = [](const std::vector<unsigned>& words, std::size_t i) {
    return words[i / 2] >> 16 * (i % 2) & 0xffff;
  };
  for (const bool transposed : {false, true}) {
    ASSERT_TRUE(launch_of::load_matrices({1, 32}, {}, transposed, x.data(), out.data()).ok());
    for (std::size_t m = 0; m < 4; ++m)
      for (std::size_t lane = 0; lane < 32; ++lane)
        for (std::size_t half = 0; half < 2; ++half) {
          const std::size_t row = lane / 4, column = lane % 4 * 2 + half;
          ASSERT_EQ(out[m * 32 + lane] >> 16 * half & 0xffff,
                    element(x, m * 64 + (transposed ? column * 8 + row : row * 8 + column)));
        }
    ASSERT_TRUE(launch_of::store_matrices({1, 32}, {}, transposed, out.data(), back.data()).ok());
    EXPECT_EQ(back, x);
  }
}

/// Any bits; near each other, so that they cancel; and all that is special.
std::uint32_t any_bits(std::mt19937& random, int kind, Type type) {
  const auto bits = static_cast<std::uint32_t>(random());
  if (kind == 0) return type == Type::tf32 ? bits & 0xffffe000 : bits & 0xffff;
  const double size = 1 + static_cast<double>(bits >> 8 & 0xffff) / 65536;
  const int spread = kind == 1 ? 3 : kind == 2 ? 12 : 40;
  return bits_of(type,
                 std::ldexp(bits & 1 ? -size : size, static_cast<int>(bits >> 24) % spread - spread / 2));
}

TEST(TensorCore, IsItsDefinition) {
  std::mt19937 random(2);
  for (const auto& [type, depth, matrix_type] : kProducts) {
    const tensor_core::Model model = tensor_core::model(matrix_type);
    ASSERT_EQ(model.block, depth);
    for (int round = 0; round < 400; ++round) {
      float a[16][tensor_core::kDepth] = {}, b[8][tensor_core::kDepth] = {}, d[16][8];
      const int kind = round % 4;
      for (int k = 0; k < depth; ++k) {
        for (auto& row : a) row[k] = tensor_core::to_float(matrix_type, any_bits(random, kind, type));
        for (auto& row : b) row[k] = tensor_core::to_float(matrix_type, any_bits(random, kind, type));
      }
      for (auto& row : d)
        for (float& v : row)
          v = kind == 0
                  ? std::bit_cast<float>(static_cast<std::uint32_t>(random()))
                  : tensor_core::to_float(MatrixType::kTf32, any_bits(random, kind, Type::tf32)) * 1.37f;
      float c[16][8];
      std::memcpy(c, d, sizeof c);
      tensor_core::multiply(a, b, d, model);
      for (int i = 0; i < 16; ++i)
        for (int j = 0; j < 8; ++j) {
          const auto is = std::bit_cast<std::uint32_t>(d[i][j]);
          ASSERT_EQ(is, std::bit_cast<std::uint32_t>(by_definition(a[i], b[j], c[i][j], depth)))
              << int(type) << " round " << round << ": " << d[i][j];
          ASSERT_EQ(is, std::bit_cast<std::uint32_t>(tensor_core::step(a[i], b[j], c[i][j], model)));
        }
    }
  }
}

TEST(TensorCore, CutsWhatLiesBelowTheLargest) {
  float a[16] = {1, 1}, b[16] = {1, 0x1p-25f};
  const tensor_core::Model model = tensor_core::model(MatrixType::kBf16);
  EXPECT_EQ(tensor_core::step(a, b, -1, model), 0x1p-25f);
  b[1] = 0x1p-26f;
  EXPECT_EQ(tensor_core::step(a, b, -1, model), 0);
  b[1] = -0x1p-25f;  // the sum is cut toward zero
  EXPECT_EQ(tensor_core::step(a, b, 0, model), 1 - 0x1p-24f);
}

TEST(Matrices, AllLanesOrASentence) {
  std::vector<float> d(32);
  const Status s = launch_of::lane_missing({1, 32}, {}, d.data());
  EXPECT_NE(std::string(s.message()).find("takes all 32 lanes"), std::string::npos) << s.message();
  std::vector<int> sums(32);
  const Status of_bytes = launch_of::lane_missing_of_bytes({1, 32}, {}, sums.data());
  EXPECT_NE(std::string(of_bytes.message()).find("takes all 32 lanes"), std::string::npos)
      << of_bytes.message();
}

TEST(Matrices, ChecksSeeWhatIsRead) {
  if (!controls().checked) GTEST_SKIP() << "the plain build";
  std::vector<unsigned> x(128, 1), out(128);
  const auto finding = [] {
    Finding found[4];
    return controls().take_findings(found, 4) == 0 ? std::string() : std::string(found[0].sentence);
  };
  EXPECT_TRUE(launch_of::load_matrices({1, 32}, {}, false, x.data(), out.data()).ok());
  EXPECT_EQ(finding(), "");
  EXPECT_TRUE(launch_of::no_barrier({1, 32}, {}, x.data(), out.data()).ok());
  EXPECT_NE(finding(), "");
  std::vector<int> sums(32);
  EXPECT_TRUE(launch_of::bytes_unwritten({1, 32}, {}, x.data(), sums.data()).ok());
  EXPECT_NE(finding(), "");
  EXPECT_TRUE(launch_of::misaligned_row({1, 32}, {}, x.data(), out.data()).ok());
#if !defined(__clang__)  // which reads a row in smaller words, each of them aligned
  EXPECT_NE(finding().find("16 bytes at once"), std::string::npos);
#endif
}

}  // namespace
}  // namespace rooftile::emulated::test
