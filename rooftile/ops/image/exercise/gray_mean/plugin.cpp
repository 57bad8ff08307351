// Judges the learner's kernel as rooftile's rgb_to_gray, by another oracle: the mean of the channels.
#include "rooftile/exercise/cpu.h"
#include "rooftile/ops/image/image.problem.h"

#include ROOFTILE_EXERCISE

static rooftile::Status launch(const rooftile::CpuLaunch&, const rooftile::GrayProblem& p) {
  using namespace rooftile;
  for (std::int64_t row = 0; row < p.rows.rows; ++row)
    gray_mean(
        exercise::Team(),
        tile::Pixels{p.rgb + p.rows.offset(1, row), p.rows.columns, p.rows.column_stride[1], p.channel},
        tile::Row<std::uint8_t>{p.gray + p.rows.offset(0, row), p.rows.columns, p.rows.column_stride[0]});
  return {};
}
ROOFTILE_EXERCISE_KERNEL("rgb_to_gray", "tile", launch)
