#include "rooftile/backend/emulated/tensor_core.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace rooftile::emulated::tensor_core {
namespace {
constexpr int kZero = -2000, kSpecial = 5000;  // exponents of zeros, of infinities and NaN
constexpr std::uint32_t kNan = 0x7fffffff;     // the hardware's
constexpr int kExtreme = 100;                  // beyond 2^±this, powers of two are no fp32 numbers for sure

/// Floor of the value's binary logarithm; of a subnormal one as if there was room.
int exponent(float v) {
  const auto bits = std::bit_cast<std::uint32_t>(v);
  const int field = static_cast<int>(bits >> 23 & 255);
  if (field == 255) return kSpecial;
  if (field != 0) return field - 127;
  const std::uint32_t fraction = bits & 0x7fffff;
  return fraction == 0 ? kZero : -118 - std::countl_zero(fraction);
}

/// To fp32, toward zero; of its fraction the upper bits.
float cut(double v, int fraction_bits) {
  auto f = static_cast<float>(v);
  if (!std::isfinite(f)) return f;
  if (std::fabs(static_cast<double>(f)) > std::fabs(v)) f = std::nextafterf(f, 0.f);
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(f) & ~0u << (23 - fraction_bits));
}

float half_to_float(std::uint32_t bits) {
  const std::uint32_t fraction = bits & 0x3ff, field = bits >> 10 & 31, sign = (bits & 0x8000) << 16;
  if (field == 31) return std::bit_cast<float>(sign | 0x7f800000 | fraction << 13);
  if (field != 0) return std::bit_cast<float>(sign | (field + 112) << 23 | fraction << 13);
  const float v = static_cast<float>(fraction) * 0x1p-24f;
  return sign != 0 ? -v : v;
}

/// e4m3: no infinities, one NaN of each sign.
float e4m3_to_float(std::uint32_t bits) {
  const std::uint32_t size = bits & 0x7f, sign = (bits & 0x80) << 24;
  if (size == 0x7f) return std::bit_cast<float>(sign | 0x7fc00000);
  const float v =
      size < 8 ? static_cast<float>(size) * 0x1p-9f : std::bit_cast<float>((size << 20) + (120u << 23));
  return sign != 0 ? -v : v;
}

typedef float Floats __attribute__((vector_size(32)));
typedef int Ints __attribute__((vector_size(32)));
typedef unsigned Words __attribute__((vector_size(32)));

/// Of a row, eight results at once: in integers, cut at the largest exponent. Lanes of `extreme` are all ones
/// where that was too large or too small for it.
template <int kBlock>
void multiply_row(const float* a, const int* a_exponent, const Floats* b, const Ints* b_exponent, Floats& c,
                  Ints& extreme, Model m) {
  const int fraction_bits = m.fraction_bits;
  const Ints field = (Ints)c >> 23 & 255;
  Ints top = field == 0 ? Ints{} + kZero : field - 127;
  for (int k = 0; k < kBlock; ++k) {
    const Ints e = b_exponent[k] + a_exponent[k];
    top = e > top ? e : top;
  }
  const Ints bounded = top < -kExtreme ? Ints{} - kExtreme : (top > kExtreme ? Ints{} + kExtreme : top);
  const Floats up = (Floats)((fraction_bits + 127 - bounded) << 23);
  const Floats down = (Floats)((bounded - fraction_bits + 127) << 23);
  // In two halves, each of which fits 31 bits: eight products below 2^27, and c below 2^26. Without a sign,
  // as extreme lanes wrap.
  Words half[2] = {(Words) __builtin_convertvector(c * up, Ints), Words{}};
  for (int k = 0; k < kBlock; ++k) half[k & 1] += (Words) __builtin_convertvector(b[k] * a[k] * up, Ints);
  const Ints sum = (Ints)(half[0] + half[1]);
  // To float toward zero, whatever the rounding mode is: one down where it came out larger.
  const Ints negative = sum >> 31;
  const Words size = (Words)(sum ^ negative) - (Words)negative;
  Floats rounded = __builtin_convertvector((Ints)size, Floats);
  const Words back = (Words) __builtin_convertvector(rounded, Ints);  // of 2^31 its own bits
  rounded = (Floats)(((Ints)rounded + (Ints)(back > size)) & static_cast<int>(~0u << (23 - m.result_bits)));
  const Ints overflow = (((Ints)half[0] ^ sum) & ((Ints)half[1] ^ sum)) >> 31;
  const Ints something = (top > -1000) | (((Ints)c & 0x7fffffff) != 0);
  extreme = overflow | (top > kExtreme) | ((top < -kExtreme) & something);
  const Floats result = (Floats)((Ints)(rounded * down) | (negative & static_cast<int>(0x80000000)));
  c = extreme != 0 ? c : result;
}

template <int kBlock>
void multiply_all(const float (*a)[kDepth], int rows, const float (*b)[kDepth], int width, float* d,
                  Model m) {
  int exponents[64][kBlock];
  for (int i = 0; i < rows; ++i)
    for (int k = 0; k < kBlock; ++k) exponents[i][k] = exponent(a[i][k]);
  for (int first = 0; first < width; first += 8) {
    Floats columns[kBlock];
    Ints column_exponents[kBlock];
    for (int k = 0; k < kBlock; ++k)
      for (int j = 0; j < 8; ++j) {
        columns[k][j] = b[first + j][k];
        column_exponents[k][j] = exponent(b[first + j][k]);
      }
    for (int i = 0; i < rows; ++i) {
      float* results = d + i * width + first;
      Floats row;
      __builtin_memcpy(&row, results, sizeof row);
      Ints extreme;
      multiply_row<kBlock>(a[i], exponents[i], columns, column_exponents, row, extreme, m);
      for (int j = 0; j < 8; ++j)
        results[j] = extreme[j] != 0 ? step(a[i], b[first + j], results[j], m) : row[j];
    }
  }
}
}  // namespace

float to_float(MatrixType type, std::uint32_t bits) {
  switch (type) {
    case MatrixType::kBf16:
      return std::bit_cast<float>(bits << 16);
    case MatrixType::kF16:
      return half_to_float(bits);
    case MatrixType::kE4m3:
      return e4m3_to_float(bits);
    case MatrixType::kE5m2:
      return half_to_float(bits << 8);
    default:
      return std::bit_cast<float>(bits & 0xffffe000);
  }
}

float step(const float* a, const float* b, float c, Model m) {
  int top = exponent(c);
  double special = top == kSpecial ? static_cast<double>(c) : 0;
  for (int k = 0; k < m.block; ++k) {
    const int ea = exponent(a[k]), eb = exponent(b[k]);
    if (ea == kSpecial || eb == kSpecial) {
      top = kSpecial;
      special += static_cast<double>(a[k]) * static_cast<double>(b[k]);
    }
    if (ea != kZero && eb != kZero) top = std::max(top, ea + eb);
  }
  if (top >= kSpecial - 1000)
    return std::isnan(special) ? std::bit_cast<float>(kNan) : static_cast<float>(special);
  if (top < -1000) return 0;
  const auto kept = [&](double v) { return std::trunc(std::ldexp(v, m.fraction_bits - top)); };
  double sum = kept(static_cast<double>(c));
  for (int k = 0; k < m.block; ++k) sum += kept(static_cast<double>(a[k]) * static_cast<double>(b[k]));
  return cut(std::ldexp(sum, top - m.fraction_bits), m.result_bits);
}

void multiply(const float (*a)[kDepth], int rows, const float (*b)[kDepth], int columns, float* d, Model m) {
  return m.block == 8    ? multiply_all<8>(a, rows, b, columns, d, m)
         : m.block == 16 ? multiply_all<16>(a, rows, b, columns, d, m)
                         : multiply_all<32>(a, rows, b, columns, d, m);
}
void multiply(const std::int8_t (*a)[kDepth], int rows, const std::int8_t (*b)[kDepth], int columns,
              std::uint32_t* d) {
  for (int first = 0; first < columns; first += 8) {
    Words column[kDepth];
    for (int k = 0; k < kDepth; ++k)
      for (int j = 0; j < 8; ++j) column[k][j] = static_cast<std::uint32_t>(b[first + j][k]);
    for (int i = 0; i < rows; ++i) {
      std::uint32_t* const results = d + i * columns + first;
      Words sum;
      __builtin_memcpy(&sum, results, sizeof sum);
      for (int k = 0; k < kDepth; ++k) sum += column[k] * static_cast<std::uint32_t>(a[i][k]);
      __builtin_memcpy(results, &sum, sizeof sum);
    }
  }
}
void multiply(const float (&a)[16][kDepth], const float (&b)[8][kDepth], float (&d)[16][8], Model m) {
  multiply(a, 16, b, 8, &d[0][0], m);
}

}  // namespace rooftile::emulated::tensor_core
