// Judges the learner's kernel as rooftile's embedding, without positions: a block of 128 threads per token.
#include "rooftile/exercise/gpu.h"
#include "rooftile/ops/embedding/embedding.problem.h"

#include ROOFTILE_EXERCISE

static rooftile::Status launch(const rooftile::CudaLaunch& where, const rooftile::EmbeddingProblem& p) {
  if (p.rows.rows == 0 || p.rows.columns == 0) return {};
  return rooftile::cuda::launch(where, "embedding", {static_cast<unsigned>(p.rows.rows), 128u}, embedding,
                                static_cast<const long long*>(p.tokens.data),
                                static_cast<const float*>(p.table), static_cast<float*>(p.y),
                                static_cast<long long>(p.tokens.table_rows),
                                static_cast<int>(p.rows.columns));
}
ROOFTILE_EXERCISE_KERNEL("embedding", "tile", launch)
