// Judges the learner's kernel as rooftile's layer_norm without weights: rows of f32 on one thread.
#include "rooftile/exercise/cpu.h"
#include "rooftile/ops/layer_norm/layer_norm.problem.h"

#include ROOFTILE_EXERCISE

static rooftile::Status launch(const rooftile::CpuLaunch&, const rooftile::LayerNormProblem& p) {
  using namespace rooftile;
  const auto* x = static_cast<const float*>(p.data[p.kX]);
  auto* y = static_cast<float*>(const_cast<void*>(p.data[p.kY]));
  for (std::int64_t row = 0; row < p.rows.rows; ++row)
    layer_norm_welford(exercise::Team(), tile::Row<const float>{x + p.rows.offset(p.kX, row), p.rows.columns},
                       tile::Row<float>{y + p.rows.offset(p.kY, row), p.rows.columns}, p.eps());
  return {};
}
ROOFTILE_EXERCISE_KERNEL("layer_norm", "tile", launch)
