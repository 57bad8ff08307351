// Judges the learner's kernel as rooftile's cross_entropy, without its options: a block of 256 threads per
// row.
#include "rooftile/exercise/gpu.h"
#include "rooftile/ops/cross_entropy/cross_entropy.problem.h"

#include ROOFTILE_EXERCISE

static __global__ void add_up(const float* losses, int rows, float* loss) {
  double sum = 0;
  for (int i = 0; i < rows; ++i) sum += losses[i];
  *loss = static_cast<float>(sum);
}

static rooftile::Status launch(const rooftile::CudaLaunch& where, const rooftile::CrossEntropyProblem& p) {
  using rooftile::Status;
  const auto rows = static_cast<int>(p.rows.rows), classes = static_cast<int>(p.rows.columns);
  if (rows > 0 && classes == 0) return Status::error("cross_entropy: the exercise has one class or more");
  if (rows > 0)
    if (Status s = rooftile::cuda::launch(where, "cross_entropy", {static_cast<unsigned>(rows), 256u},
                                          cross_entropy, static_cast<const float*>(p.logits),
                                          static_cast<const long long*>(p.terms.target), p.losses, classes);
        !s)
      return s;
  return rooftile::cuda::launch(where, "add_up", {1u, 1u}, add_up, static_cast<const float*>(p.losses), rows,
                                p.loss);
}
ROOFTILE_EXERCISE_KERNEL("cross_entropy", "tile", launch)
