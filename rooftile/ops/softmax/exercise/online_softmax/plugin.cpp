// Judges the learner's kernel as rooftile's softmax: a block of 256 threads per row.
#include "rooftile/exercise/gpu.h"
#include "rooftile/ops/softmax/softmax.problem.h"

#include ROOFTILE_EXERCISE

static rooftile::Status launch(const rooftile::CudaLaunch& where, const rooftile::SoftmaxProblem& p) {
  if (p.rows.rows == 0 || p.rows.columns == 0) return {};
  return rooftile::cuda::launch(where, "softmax", {static_cast<unsigned>(p.rows.rows), 256u}, softmax,
                                static_cast<const float*>(p.x), static_cast<float*>(p.y),
                                static_cast<int>(p.rows.columns));
}
ROOFTILE_EXERCISE_KERNEL("softmax", "tile", launch)
