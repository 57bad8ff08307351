#include "rooftile/core/convert.h"
#include "rooftile/core/element.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

namespace rooftile {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
const double kNaN = std::numeric_limits<double>::quiet_NaN();

/// One format: its bits, how a code is decoded and encoded, and what its standard says of its ends.
struct Format {
  DType type;
  int exponent_bits, mantissa_bits;
  bool finite;        // no infinity
  double largest;     // the largest finite number
  std::uint32_t top;  // its code
  double (*decode)(std::uint32_t code);
  std::uint32_t (*encode)(double x);
};

template <class T, class Bits>
Format format(int exponent_bits, int mantissa_bits, double largest, std::uint32_t top, bool finite = false) {
  return {dtype_of<T>,
          exponent_bits,
          mantissa_bits,
          finite,
          largest,
          top,
          [](std::uint32_t code) { return static_cast<double>(to_float(T{static_cast<Bits>(code)})); },
          [](double x) -> std::uint32_t { return from_double<T>(x).bits; }};
}

std::vector<Format> formats() {
  Format tf = format<tf32, std::uint32_t>(8, 10, (2 - 0x1p-10) * 0x1p127, 0x3fbff);
  // Stored in the upper bits of an f32.
  tf.decode = [](std::uint32_t code) { return static_cast<double>(to_float(tf32{code << 13})); };
  tf.encode = [](double x) { return from_double<tf32>(x).bits >> 13; };
  return {format<f16, std::uint16_t>(5, 10, 65504, 0x7bff),
          format<bf16, std::uint16_t>(8, 7, 255 * 0x1p120, 0x7f7f),
          format<f8e4m3, std::uint8_t>(4, 3, 448, 0x7e, true),
          format<f8e5m2, std::uint8_t>(5, 2, 57344, 0x7b), tf};
}

std::uint32_t sign_bit(const Format& f) { return 1u << (f.exponent_bits + f.mantissa_bits); }

/// All positive finite values by counting: steps of the smallest number, doubled each 2^mantissa codes from
/// the second binade on.
std::vector<double> counted(const Format& f) {
  std::vector<double> values;
  double value = 0, step = smallest_subnormal(f.type);
  const std::uint32_t per_binade = 1u << f.mantissa_bits;
  for (std::uint32_t code = 0; code <= f.top; ++code, value += step) {
    values.push_back(value);
    if (code >= 2 * per_binade && code % per_binade == 0) step *= 2;
  }
  return values;
}

TEST(Convert, DecodesEveryCode) {
  for (const Format& f : formats()) {
    SCOPED_TRACE(name(f.type));
    const std::vector<double> values = counted(f);
    EXPECT_EQ(values.back(), f.largest);
    for (std::uint32_t code = 0; code <= f.top; ++code) {
      ASSERT_EQ(f.decode(code), values[code]) << code;
      ASSERT_EQ(f.decode(code | sign_bit(f)), -values[code]) << code;
      ASSERT_TRUE(std::signbit(f.decode(code | sign_bit(f)))) << code;
    }
    std::uint32_t code = f.top + 1;
    if (!f.finite) {
      EXPECT_EQ(f.decode(code), kInf);
      EXPECT_EQ(f.decode(code | sign_bit(f)), -kInf);
      ++code;
    }
    for (; code < sign_bit(f); ++code) {
      ASSERT_TRUE(std::isnan(f.decode(code))) << code;
      ASSERT_TRUE(std::isnan(f.decode(code | sign_bit(f)))) << code;
    }
  }
}

TEST(Convert, EncodesWhatItDecoded) {
  for (const Format& f : formats())
    for (std::uint32_t code = 0; code < 2 * sign_bit(f); ++code) {
      const double value = f.decode(code);
      if (std::isnan(value)) continue;
      ASSERT_EQ(f.encode(value), code) << name(f.type);
    }
}

TEST(Convert, RoundsToNearestWithTiesToEven) {
  for (const Format& f : formats()) {
    SCOPED_TRACE(name(f.type));
    for (std::uint32_t code = 0; code <= f.top; ++code) {
      const double here = f.decode(code);
      // Past the largest number as if the format went on.
      const double next = code == f.top ? here + (here - f.decode(code - 1)) : f.decode(code + 1);
      const double middle = (here + next) / 2;  // exact in double
      const std::uint32_t even = code % 2 == 0 ? code : code + 1;
      ASSERT_EQ(f.encode(middle), even) << "between " << here << " and " << next;
      ASSERT_EQ(f.encode(std::nextafter(middle, 0)), code)
          << "below the middle of " << here << " and " << next;
      ASSERT_EQ(f.encode(std::nextafter(middle, kInf)), code + 1)
          << "above the middle of " << here << " and " << next;
      ASSERT_EQ(f.encode(-middle), even | sign_bit(f));
      ASSERT_EQ(f.encode(-std::nextafter(middle, 0)), code | sign_bit(f));
      ASSERT_EQ(f.encode(-std::nextafter(middle, kInf)), (code + 1) | sign_bit(f));
    }
  }
}

TEST(Convert, EncodesWhatDoesNotFit) {
  for (const Format& f : formats()) {
    SCOPED_TRACE(name(f.type));
    // Infinity; NaN, where the format has none.
    for (const double x : {2 * f.largest, 1e300, std::numeric_limits<double>::max(), kInf}) {
      EXPECT_EQ(f.encode(x), f.top + 1) << x;
      EXPECT_EQ(f.encode(-x), (f.top + 1) | sign_bit(f)) << x;
    }
    for (const double x : {1e-300, std::numeric_limits<double>::denorm_min()}) {
      EXPECT_EQ(f.encode(x), 0u);
      EXPECT_EQ(f.encode(-x), sign_bit(f));
    }
    EXPECT_EQ(f.encode(-0.0), sign_bit(f));
    EXPECT_TRUE(std::isnan(f.decode(f.encode(kNaN))));
    EXPECT_TRUE(std::isnan(f.decode(f.encode(-kNaN))));
  }
}

TEST(Convert, StatesEachFormatsPrecision) {
  for (const Format& f : formats()) {
    EXPECT_EQ(significand_bits(f.type), f.mantissa_bits + 1) << name(f.type);
    EXPECT_EQ(f.decode(1), smallest_subnormal(f.type)) << name(f.type);
  }
  EXPECT_EQ(significand_bits(DType::f32), std::numeric_limits<float>::digits);
  EXPECT_EQ(significand_bits(DType::f64), std::numeric_limits<double>::digits);
  EXPECT_EQ(smallest_subnormal(DType::f32), static_cast<double>(std::numeric_limits<float>::denorm_min()));
  EXPECT_EQ(smallest_subnormal(DType::f64), std::numeric_limits<double>::denorm_min());
  EXPECT_EQ(smallest_subnormal(DType::u8), 1);
}

#if defined(__FLT16_MANT_DIG__)
TEST(Convert, AgreesWithTheCompilersFloat16) {
  for (std::uint32_t code = 0; code < 65536; ++code) {
    const auto theirs = static_cast<float>(std::bit_cast<_Float16>(static_cast<std::uint16_t>(code)));
    const float ours = to_float(f16{static_cast<std::uint16_t>(code)});
    if (std::isnan(theirs)) {
      ASSERT_TRUE(std::isnan(ours)) << code;
    } else {
      ASSERT_EQ(std::bit_cast<std::uint32_t>(ours), std::bit_cast<std::uint32_t>(theirs)) << code;
    }
  }
  std::mt19937_64 random(3);
  for (int i = 0; i < 300000; ++i) {
    const double x = std::ldexp(std::uniform_real_distribution<double>(-2, 2)(random),
                                std::uniform_int_distribution<int>(-28, 16)(random));
    ASSERT_EQ(from_double<f16>(x).bits, std::bit_cast<std::uint16_t>(static_cast<_Float16>(x))) << x;
  }
}
#endif

}  // namespace
}  // namespace rooftile
