// Judges the learner's add and blocks_for as rooftile's add: a thread for each element, 256 to a block.
#include <cstdio>

#include "rooftile/exercise/gpu.h"
#include "rooftile/ops/blas1/blas1.problem.h"

#include ROOFTILE_EXERCISE

static rooftile::Status launch(const rooftile::CudaLaunch& where, const rooftile::AddProblem& p) {
  const long long n = p.rows.columns;
  if (n == 0) return {};
  constexpr unsigned kThreads = 256;
  const auto blocks = static_cast<unsigned>(blocks_for(n, kThreads));
  if (blocks == 0) return {};
  if (const long long enough = (n + kThreads - 1) / kThreads; blocks > enough) {
    auto& counts = rooftile::exercise::counts;
    std::snprintf(counts.kind, sizeof counts.kind, "grid");
    std::snprintf(counts.note, sizeof counts.note,
                  "blocks_for(%lld, %u) gives %u blocks, %lld hold all elements", n, kThreads, blocks,
                  enough);
  }
  return rooftile::cuda::launch(where, "add", {blocks, kThreads}, add, static_cast<const float*>(p.x),
                                static_cast<const float*>(p.y), static_cast<float*>(p.z), n);
}
ROOFTILE_EXERCISE_KERNEL("add", "01_one_element", launch)
