#pragma once
// Where a position outside of a line of pixels leads, and how often a window meets one of them: the same on
// all machines. The oracle walks there step by step.
#include <cstdint>

#include "rooftile/ops/blur/blur.h"

namespace rooftile {

constexpr std::int64_t kNoPixel = -1;

/// The pixel that stands at position `i` of a line of `size`; kNoPixel: 0 does.
constexpr std::int64_t border_pixel(BlurBorder border, std::int64_t size, std::int64_t i) {
  if (i >= 0 && i < size) return i;
  if (border == BlurBorder::zero) return kNoPixel;
  if (border == BlurBorder::replicate) return i < 0 ? 0 : size - 1;
  if (size == 1) return 0;
  const std::int64_t period = 2 * (size - 1);
  if (i < 0) i = -i;
  if (i >= period) i %= period;
  return i < size ? i : period - i;
}

constexpr std::int64_t floor_quotient(std::int64_t a, std::int64_t b) {
  return a >= 0 ? a / b : -((b - 1 - a) / b);
}

/// At how many of the positions first … last, of which some are pixels, pixel `index` stands.
constexpr std::int64_t border_times(BlurBorder border, std::int64_t size, std::int64_t index,
                                    std::int64_t first, std::int64_t last) {
  if (border == BlurBorder::reflect_101) {
    const std::int64_t period = size == 1 ? 1 : 2 * (size - 1);
    const auto congruent = [&](std::int64_t rest) {
      return floor_quotient(last - rest, period) - floor_quotient(first - 1 - rest, period);
    };
    return congruent(index) + (index == 0 || index == size - 1 ? 0 : congruent(-index));
  }
  std::int64_t times = first <= index && index <= last;
  if (border == BlurBorder::zero) return times;
  if (index == 0 && first < 0) times -= first;
  if (index == size - 1 && last >= size) times += last - (size - 1);
  return times;
}

}  // namespace rooftile
