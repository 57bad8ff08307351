// Judges the learner's kernel as rooftile's softmax: rows of f32, one after another on one thread.
#include "rooftile/exercise/cpu.h"
#include "rooftile/ops/softmax/softmax.problem.h"

#include ROOFTILE_EXERCISE

static rooftile::Status launch(const rooftile::CpuLaunch&, const rooftile::SoftmaxProblem& p) {
  using namespace rooftile;
  const auto* x = static_cast<const float*>(p.x);
  auto* y = static_cast<float*>(p.y);
  for (std::int64_t row = 0; row < p.rows.rows; ++row)
    softmax_one_pass(exercise::Team(), tile::Row<const float>{x + p.rows.offset(0, row), p.rows.columns},
                     tile::Row<float>{y + p.rows.offset(1, row), p.rows.columns}, tile::SplitScale(p.scale));
  return {};
}
ROOFTILE_EXERCISE_KERNEL("softmax", "tile", launch)
