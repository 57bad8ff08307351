#include "rooftile/harness/check/fill.h"

#include <algorithm>
#include <cmath>
#include <random>

#include "rooftile/harness/check/compare.h"
#include "rooftile/harness/tensor.h"

namespace rooftile::harness {
namespace {

/// 65536 draws of the standard normal: one takes 50 ns, a place in a table 1 ns.
const std::vector<double>& normals() {
  static const std::vector<double> table = [] {
    std::vector<double> values(65536);
    std::mt19937_64 random(1);
    const auto uniform = [&] { return (static_cast<double>(random() >> 11) + 0.5) * 0x1p-53; };
    for (std::size_t i = 0; i < values.size(); i += 2) {
      const double radius = std::sqrt(-2 * std::log(uniform())),
                   angle = 2 * 3.14159265358979323846 * uniform();
      values[i] = radius * std::cos(angle);
      values[i + 1] = radius * std::sin(angle);
    }
    return values;
  }();
  return table;
}

double largest(DType type) {
  switch (type) {
    case DType::f64:
      return 0x1.fffffffffffffp1023;
    case DType::f32:
      return 0x1.fffffep127;
    case DType::tf32:
      return 0x1.ffcp127;
    case DType::bf16:
      return 0x1.fep127;
    case DType::f16:
      return 65504;
    case DType::f8e4m3:
      return 448;
    default:
      return 57344;
  }
}

/// From the largest number to its root.
int most_halvings(DType type) { return std::ilogb(largest(type)) / 2 + 1; }

/// Normal numbers `values` of row number `row`, made what no f32 sum of squares holds: large, small, the
/// largest, subnormal, one large among normal ones, with squares at f32's end, and with a root that f32 just
/// holds. Every other row stays as it is.
void make_far(double* values, std::size_t columns, std::size_t row, DType type, std::uint64_t draw) {
  const int most = std::ilogb(largest(type)), least = std::ilogb(smallest_normal(type));
  const auto scale = [&](int exponent) {
    for (std::size_t i = 0; i < columns; ++i) values[i] = std::ldexp(values[i], exponent);
  };
  switch (row % 14) {
    case 1:
      return scale(std::min(100, most - 3));
    case 3:
      return scale(std::max(-73, least + 3));
    case 5:
      for (std::size_t i = 0; i < columns; ++i)
        values[i] = std::copysign(largest(type) * (1 - std::ldexp(std::fabs(values[i]), -6)), values[i]);
      return;
    case 7:
      return scale(least - 2);
    case 9:
      values[draw % columns] = std::ldexp(1.5, std::min(100, most - 3));
      return;
    case 11:
      return scale(std::min(63, most - 3));
    case 13:
      return scale(std::max(-120, least + 3));
    default:
      return;
  }
}

/// Uniform over an integer dtype; i64 stays within what a double holds exactly.
double any_integer(DType type, std::uint64_t bits) {
  switch (type) {
    case DType::boolean:
      return static_cast<double>(bits & 1);
    case DType::u8:
      return static_cast<double>(bits & 255);
    case DType::u4:
      return static_cast<double>(bits & 15);
    case DType::i8:
      return static_cast<double>(static_cast<std::int8_t>(bits & 255));
    case DType::i32:
      return static_cast<double>(static_cast<std::int32_t>(bits & 0xFFFFFFFF));
    default:
      return static_cast<double>(static_cast<std::int64_t>(bits) >> 11);
  }
}

}  // namespace

bool fits(Fill fill, DType type) {
  if (fill == Fill::zeros || fill == Fill::constant_rows) return true;
  if (!is_floating(type)) return fill == Fill::bytes;
  if (fill == Fill::one_infinity || fill == Fill::minus_infinities || fill == Fill::masked)
    return type != DType::f8e4m3;
  return fill != Fill::bytes;
}

bool finite(Fill fill) {
  return fill != Fill::one_infinity && fill != Fill::minus_infinities && fill != Fill::masked &&
         fill != Fill::one_nan;
}

std::vector<double> fill_values(const Operand& operand, Fill fill, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto size = static_cast<std::size_t>(count_of(operand.shape));
  const std::size_t columns = operand.shape.empty() ? 1 : static_cast<std::size_t>(operand.shape.back());
  std::vector<double> values(size);
  if (size == 0) return values;
  if (!is_floating(operand.dtype)) {
    const double constant = any_integer(operand.dtype, random() & 0x7F);
    for (double& v : values)
      v = fill == Fill::zeros           ? 0
          : fill == Fill::constant_rows ? constant
                                        : any_integer(operand.dtype, random());
    if (operand.below > 0)
      for (double& v : values) v = std::fmod(std::fabs(v), static_cast<double>(operand.below));
    return values;
  }

  const std::vector<double>& table = normals();
  std::uint64_t at = random();
  for (double& v : values) {
    if (at % 4096 == 0) at += random() % 65536;  // so that rows of any length differ
    v = table[at++ % table.size()];
  }
  const std::size_t rows = size / columns;
  switch (fill) {
    case Fill::wide:
      for (double& v : values) v = std::ldexp(v, static_cast<int>(random() % 25) - 12);
      break;
    case Fill::positive:
      for (double& v : values) v = std::fabs(v);
      break;
    case Fill::constant_rows:
      for (std::size_t i = 0; i < size; ++i) values[i] = values[i / columns * columns];
      break;
    case Fill::large_offset:
      for (double& v : values) v += 1000;
      break;
    case Fill::zeros:
      for (double& v : values) v = 0;
      break;
    case Fill::denormals:
      for (double& v : values)
        v *= std::ldexp(smallest_normal(operand.dtype), 2 - static_cast<int>(random() % 8));
      break;
    case Fill::one_infinity:
    case Fill::one_nan:
      for (std::size_t row = 0; row < rows; ++row)
        values[row * columns + random() % columns] = fill == Fill::one_nan ? std::nan("") : HUGE_VAL;
      break;
    case Fill::minus_infinities:
      for (std::size_t i = 0; i < size; ++i)
        if ((random() >> 32) % 2 || (rows > 2 && i / columns == 1)) values[i] = -HUGE_VAL;
      break;
    case Fill::masked:
      // So low that exponentials from 0 instead of the row's largest lose their digits, and are not 0 yet.
      for (std::size_t i = 0; i < size; ++i) {
        const std::size_t seen = 1 + i / columns * 37 % columns;
        values[i] = i % columns < seen ? values[i] - 95 : -HUGE_VAL;
      }
      break;
    case Fill::huge:
      // A third stays as it is; powers down to the root, where squares just fit; not all alike.
      for (double& v : values) {
        const std::uint64_t draw = random() >> 32;
        const int halvings = draw % 5 == 0 ? static_cast<int>(draw / 5 % 64) : 0;
        if (draw % 3 != 0)
          v = std::copysign(std::ldexp(largest(operand.dtype) * (1 - std::ldexp(draw / 320 % 1009, -11)),
                                       -std::min(halvings, most_halvings(operand.dtype))),
                            v);
      }
      break;
    case Fill::huge_rows:
      for (std::size_t row = 0; row < rows; ++row) {
        const double low = std::ldexp(largest(operand.dtype),
                                      -static_cast<int>(random() % 3) * (most_halvings(operand.dtype) / 2));
        for (std::size_t i = 0; i < columns; ++i) values[row * columns + i] = row % 3 == 2 ? low : -low;
      }
      break;
    case Fill::far_rows:
      for (std::size_t row = 0; row < rows; ++row)
        make_far(values.data() + row * columns, columns, row, operand.dtype, random());
      break;
    case Fill::normal:
    case Fill::bytes:
      break;
  }
  return values;
}

const char* name(Fill fill) {
  constexpr const char* names[] = {"normal",  "wide",      "positive",     "constant_rows",    "large_offset",
                                   "zeros",   "denormals", "one_infinity", "minus_infinities", "masked",
                                   "one_nan", "huge",      "huge_rows",    "far_rows",         "bytes"};
  return names[static_cast<int>(fill)];
}
const char* name(Layout layout) {
  constexpr const char* names[] = {"contiguous", "offset",     "padded_rows", "strided_columns",
                                   "reversed",   "transposed", "broadcast"};
  return names[static_cast<int>(layout)];
}

}  // namespace rooftile::harness
