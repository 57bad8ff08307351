// Judges the learner's kernel as rooftile's rope: halves, the whole head, positions from an offset on.
#include "rooftile/exercise/gpu.h"
#include "rooftile/ops/rope/rope.problem.h"

#include ROOFTILE_EXERCISE

static rooftile::Status launch(const rooftile::CudaLaunch& where, const rooftile::RopeProblem& p) {
  if (p.tokens() == 0 || p.size == 0) return {};
  for (const rooftile::RopeHeads* heads : {&p.q, &p.k}) {
    if (heads->count == 0) continue;
    if (rooftile::Status s = rooftile::cuda::launch(
            where, "rope", {static_cast<unsigned>(p.tokens()), 128u}, rope,
            static_cast<const float*>(heads->x), static_cast<float*>(heads->y), static_cast<int>(p.length),
            static_cast<int>(heads->count), static_cast<int>(p.size), p.offset);
        !s)
      return s;
  }
  return {};
}
ROOFTILE_EXERCISE_KERNEL("rope", "tile", launch)
