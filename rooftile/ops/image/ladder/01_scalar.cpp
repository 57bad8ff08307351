// Idea: for each pixel the weighted sum of its channels, rounded to the nearest whole number.
// Changed: this is the first rung. Weights in thousandths keep sums exact in a float; with 0.299, 0.587 and
//   0.114, which no float holds, sums that should end in exactly .5 fall to either side.
// Binds: three conversions to float and a division for each pixel, one pixel after another.
// Next: integers.
#include "rooftile/ops/image/ladder/ladder.h"

namespace rooftile::ladder {

void launch_scalar(const CpuLaunch&, const GrayProblem& p) {
  const float a = static_cast<float>(p.weight[0]);
  const float b = static_cast<float>(p.weight[1]);
  const float c = static_cast<float>(p.weight[2]);
  for (std::int64_t row = 0; row < p.rows.rows; ++row) {
    std::uint8_t* gray = p.gray + p.rows.offset(0, row);
    const std::uint8_t* pixel = p.rgb + p.rows.offset(1, row);
    for (std::int64_t x = 0; x < p.rows.columns; ++x, pixel += 3)
      gray[x] = static_cast<std::uint8_t>((a * pixel[0] + b * pixel[1] + c * pixel[2] + 500) / 1000);
  }
}

}  // namespace rooftile::ladder
