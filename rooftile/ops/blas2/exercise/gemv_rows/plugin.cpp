// Judges the learner's kernel as rooftile's gemv, without c: blocks of 256 threads for 32 rows each.
#include "rooftile/exercise/gpu.h"
#include "rooftile/ops/blas2/blas2.problem.h"

#include ROOFTILE_EXERCISE

static rooftile::Status launch(const rooftile::CudaLaunch& where, const rooftile::GemvProblem& p) {
  if (p.m == 0) return {};
  return rooftile::cuda::launch(where, "gemv", {static_cast<unsigned>((p.m + 31) / 32), 256u}, gemv,
                                static_cast<const float*>(p.a), static_cast<const float*>(p.x),
                                static_cast<float*>(p.y), static_cast<int>(p.m), static_cast<int>(p.n),
                                static_cast<float>(p.alpha));
}
ROOFTILE_EXERCISE_KERNEL("gemv", "tile", launch)
