// Judges the learner's kernel as rooftile's dropout, without offset and residual: a thread for each element.
#include "rooftile/exercise/gpu.h"
#include "rooftile/ops/dropout/dropout.problem.h"

#include ROOFTILE_EXERCISE

static rooftile::Status launch(const rooftile::CudaLaunch& where, const rooftile::DropoutProblem& p) {
  const long long n = p.elements.rows.rows * p.elements.rows.columns;
  if (n == 0) return {};
  const std::uint64_t seed = p.numbers.stream().seed;
  const unsigned long long least = p.keep.words == 0 ? 1ull << 32 : p.keep.least;
  return rooftile::cuda::launch(where, "dropout", {static_cast<unsigned>((n + 255) / 256), 256u}, dropout,
                                static_cast<const float*>(p.elements.data[1]),
                                static_cast<float*>(const_cast<void*>(p.elements.data[0])), n, seed, least,
                                p.keep.scale);
}
ROOFTILE_EXERCISE_KERNEL("dropout", "tile", launch)
