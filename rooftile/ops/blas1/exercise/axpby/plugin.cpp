// Judges the learner's axpby as rooftile's axpby: a thread for each element.
#include "rooftile/exercise/gpu.h"
#include "rooftile/ops/blas1/blas1.problem.h"

#include ROOFTILE_EXERCISE

static rooftile::Status launch(const rooftile::CudaLaunch& where, const rooftile::AxpbyProblem& p) {
  const long long n = p.rows.rows * p.rows.columns;
  if (n == 0) return {};
  const auto blocks = static_cast<unsigned>((n + 255) / 256);
  return rooftile::cuda::launch(where, "axpby", {blocks, 256u}, axpby, static_cast<float>(p.options[0]),
                                static_cast<const float*>(p.data[1]), static_cast<float>(p.options[1]),
                                static_cast<float*>(const_cast<void*>(p.data[0])), n);
}
ROOFTILE_EXERCISE_KERNEL("axpby", "tile", launch)
