#pragma once
// What passes from validation (blur.cpp) to the launches (blur.cpu.cpp, blur.cu, the ladder).
#include "rooftile/core/rows.h"
#include "rooftile/ops/blur/blur.border.h"
#include "rooftile/ops/blur/blur.weights.h"

namespace rooftile {

/// sum / n, rounded to the nearest, for sums of n bytes: ⌊(sum + add) · multiplier / 2^(32 + shift)⌋.
///
/// Let s = ⌈log2 n⌉ - 1, and 2^(32+s) = q·n + e. Rounding the multiplier up is off by (sum + n/2)·(n - e),
/// down (with one more added) by at most (sum + n/2 + 1)·e, both in units of 1 / (n·2^(32+s)): below one step
/// of the quotient where that is below 2^(32+s). One of n - e and e is at most n/2, and 255.5·n·n/2 <
/// 2^(32+s) as long as n < 2^24: for each window of up to 4095 pixels a side.
struct BoxDivision {
  std::uint32_t add, multiplier;
  int shift;
};
constexpr BoxDivision box_division(std::int64_t radius) {
  const std::uint64_t side = static_cast<std::uint64_t>(2 * radius + 1), n = side * side;
  if (n == 1) return {1, 0xffffffff, 0};
  int s = 0;
  while ((std::uint64_t{2} << s) < n) ++s;
  const std::uint64_t power = std::uint64_t{1} << (32 + s), down = power / n, e = power % n;
  const bool up = n - e <= e;
  return {static_cast<std::uint32_t>(n / 2 + !up), static_cast<std::uint32_t>(down + up), s};
}

/// A batch of pictures whose channels lie side by side in x and in y; or, where they do not, of planes of one
/// channel.
struct Pictures {
  const std::uint8_t* x;
  std::uint8_t* y;
  Rows<2> batch;  ///< of y, x: an element for each picture
  std::int64_t count, height, width;
  int channels;  ///< 1, 3 or 4
  std::int64_t x_row, x_pixel, y_row, y_pixel;
  BlurBorder border;

  constexpr std::int64_t start(int operand, std::int64_t picture) const {
    return batch.offset(operand, picture / batch.columns) +
           picture % batch.columns * batch.column_stride[operand];
  }
  bool dense_x() const { return width <= 1 || x_pixel == channels; }
  bool dense_y() const { return width <= 1 || y_pixel == channels; }
};

struct BoxProblem {
  Pictures pictures;
  std::int64_t radius;
  BoxDivision division;
};

struct GaussianProblem {
  Pictures pictures;
  GaussianWeights weights;
};

}  // namespace rooftile
