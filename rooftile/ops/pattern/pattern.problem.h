#pragma once
// What passes from validation (pattern.cpp) to the launches.
#include <cstdint>

#include "rooftile/core/dtype.h"

namespace rooftile {

struct PatternProblem {
  void* y;
  DType dtype;
  std::int64_t height, width;
  std::int64_t row, pixel, channel;  ///< strides, in elements
  std::uint64_t phase[3];            ///< of red, green and blue at row 0, column 0, in 2^-64ths of a turn
  double t;

  bool dense() const { return channel == 1 && (width <= 1 || pixel == 4); }
};

}  // namespace rooftile
