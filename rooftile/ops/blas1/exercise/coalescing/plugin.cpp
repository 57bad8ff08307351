// Judges the learner's add_sixteen as rooftile's add: a thread has sixteen elements.
#include "rooftile/exercise/gpu.h"
#include "rooftile/ops/blas1/blas1.problem.h"

#include ROOFTILE_EXERCISE

static rooftile::Status launch(const rooftile::CudaLaunch& where, const rooftile::AddProblem& p) {
  const long long n = p.rows.columns;
  if (n == 0) return {};
  const auto blocks = static_cast<unsigned>((n + 4095) / 4096);
  return rooftile::cuda::launch(where, "add", {blocks, 256u}, add_sixteen, static_cast<const float*>(p.x),
                                static_cast<const float*>(p.y), static_cast<float*>(p.z), n);
}
ROOFTILE_EXERCISE_KERNEL("add", "02_grid_stride", launch)
