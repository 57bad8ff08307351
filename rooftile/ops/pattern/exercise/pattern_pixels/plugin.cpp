// Judges the learner's kernel as rooftile's color_pattern in f32: a thread for each pixel of a 2-D grid.
#include "rooftile/exercise/gpu.h"
#include "rooftile/ops/pattern/pattern.problem.h"

#include ROOFTILE_EXERCISE

static rooftile::Status launch(const rooftile::CudaLaunch& where, const rooftile::PatternProblem& p) {
  if (p.height == 0 || p.width == 0) return {};
  const dim3 threads(32, 8),
      blocks(static_cast<unsigned>((p.width + 31) / 32), static_cast<unsigned>((p.height + 7) / 8));
  return rooftile::cuda::launch(
      where, "pattern", {blocks, threads}, pattern, static_cast<float*>(p.y), static_cast<int>(p.height),
      static_cast<int>(p.width), static_cast<unsigned long long>(p.phase[0]),
      static_cast<unsigned long long>(p.phase[1]), static_cast<unsigned long long>(p.phase[2]));
}
ROOFTILE_EXERCISE_KERNEL("color_pattern", "tables", launch)
