// Judges the learner's kernel as rooftile's rms_norm with a weight: rows of f32 on one thread.
#include "rooftile/exercise/cpu.h"
#include "rooftile/ops/rms_norm/rms_norm.problem.h"

#include ROOFTILE_EXERCISE

static rooftile::Status launch(const rooftile::CpuLaunch&, const rooftile::RmsNormProblem& p) {
  using namespace rooftile;
  const auto* x = static_cast<const float*>(p.data[0]);
  auto* y = static_cast<float*>(const_cast<void*>(p.data[p.kOutputs]));
  const tile::Row<const float> weights{static_cast<const float*>(p.vectors[0].data), p.rows.columns,
                                       p.vectors[0].stride};
  for (std::int64_t row = 0; row < p.rows.rows; ++row) {
    exercise::Team team;
    // Loads of the weight are not counted: the task is about the row.
    const auto weight = [&](auto chunk) { return team.Base::load(weights, chunk); };
    my_rms_norm(team, tile::Row<const float>{x + p.rows.offset(0, row), p.rows.columns}, weight,
                tile::Row<float>{y + p.rows.offset(p.kOutputs, row), p.rows.columns}, p.real(0), p.real(1));
  }
  return {};
}
ROOFTILE_EXERCISE_KERNEL("rms_norm", "tile", launch)
