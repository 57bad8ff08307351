// Judges the learner's kernel as rooftile's rms_norm with a weight: a block of 256 threads per row.
#include "rooftile/exercise/gpu.h"
#include "rooftile/ops/rms_norm/rms_norm.problem.h"

#include ROOFTILE_EXERCISE

static rooftile::Status launch(const rooftile::CudaLaunch& where, const rooftile::RmsNormProblem& p) {
  if (p.rows.rows == 0 || p.rows.columns == 0) return {};
  return rooftile::cuda::launch(where, "rms_norm", {static_cast<unsigned>(p.rows.rows), 256u}, rms_norm,
                                static_cast<const float*>(p.data[0]),
                                static_cast<const float*>(p.vectors[0].data),
                                static_cast<float*>(const_cast<void*>(p.data[p.kOutputs])),
                                static_cast<int>(p.rows.columns), p.real(0), p.real(1));
}
ROOFTILE_EXERCISE_KERNEL("rms_norm", "tile", launch)
