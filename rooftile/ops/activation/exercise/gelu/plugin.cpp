// Judges the learner's lane function as rooftile's gelu.
#include "rooftile/exercise/elements.h"

#include ROOFTILE_EXERCISE

static rooftile::Status launch(const rooftile::CpuLaunch&, const rooftile::ElementsProblem<2>& p) {
  return rooftile::exercise::map(p, [](auto x) { return my_gelu(x); });
}
ROOFTILE_EXERCISE_KERNEL("gelu", "tile", launch)
