// Judges the learner's lane function as rooftile's gelu.
#include "rooftile/core/elements.h"
#include "rooftile/exercise/cpu.h"

#include ROOFTILE_EXERCISE

static rooftile::Status launch(const rooftile::CpuLaunch&, const rooftile::ElementsProblem<2>& p) {
  using namespace rooftile;
  const auto* x = static_cast<const float*>(p.data[1]);
  auto* y = static_cast<float*>(const_cast<void*>(p.data[0]));
  for (std::int64_t row = 0; row < p.rows.rows; ++row) {
    exercise::Team team;
    const tile::Row<const float> in{x + p.rows.offset(1, row), p.rows.columns};
    const tile::Row<float> out{y + p.rows.offset(0, row), p.rows.columns};
    team.each(in.size, [&](auto chunk) { team.store(out, chunk, my_gelu(team.load(in, chunk))); });
  }
  return {};
}
ROOFTILE_EXERCISE_KERNEL("gelu", "tile", launch)
