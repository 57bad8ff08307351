#pragma once
// What passes from validation (image.cpp) to the launches (image.cpu.cpp and the ladder).
#include "rooftile/core/rows.h"

namespace rooftile {

struct GrayProblem {
  Rows<2> rows;  // of gray, and of rgb's pixels
  const std::uint8_t* rgb;
  std::uint8_t* gray;
  std::int64_t channel;  // elements from a pixel's channel to its next
  int weight[3];         // of the channels in that order, in thousandths

  /// Whether each row's bytes lie side by side.
  bool packed() const {
    if (rows.columns == 0) return true;
    return channel == 1 && (rows.columns == 1 || (rows.column_stride[0] == 1 && rows.column_stride[1] == 3));
  }
};

}  // namespace rooftile
