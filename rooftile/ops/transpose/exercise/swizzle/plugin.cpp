// Judges the learner's kernel as rooftile's transpose: blocks of 32 x 32 threads, one for each element.
#include "rooftile/exercise/gpu.h"
#include "rooftile/ops/transpose/transpose.problem.h"

#include ROOFTILE_EXERCISE

static rooftile::Status launch(const rooftile::CudaLaunch& where, const rooftile::TransposeProblem& p) {
  if (p.size() == 0) return {};
  const auto blocks = [](std::int64_t size) { return static_cast<unsigned>((size + 31) / 32); };
  return rooftile::cuda::launch(where, "transpose", {{blocks(p.n), blocks(p.m)}, {32, 32}}, transpose,
                                static_cast<const float*>(p.x), static_cast<float*>(p.y),
                                static_cast<int>(p.m), static_cast<int>(p.n));
}
ROOFTILE_EXERCISE_KERNEL("transpose", "04_padded", launch)
