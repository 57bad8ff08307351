// Judges the learner's kernel as rooftile's gemm: blocks of 32 x 32 threads, one for each element.
#include "rooftile/exercise/gpu.h"
#include "rooftile/ops/gemm/gemm.problem.h"

#include ROOFTILE_EXERCISE

static rooftile::Status launch(const rooftile::CudaLaunch& where, const rooftile::GemmProblem& p) {
  if (p.empty()) return {};
  const auto blocks = [](std::int64_t size, int tile) {
    return static_cast<unsigned>((size + tile - 1) / tile);
  };
  return rooftile::cuda::launch(where, "gemm", {{blocks(p.n, 32), blocks(p.m, 32)}, {32, 32}}, gemm,
                                static_cast<const float*>(p.a), static_cast<const float*>(p.b),
                                static_cast<float*>(p.y), static_cast<int>(p.m), static_cast<int>(p.n),
                                static_cast<int>(p.k));
}
ROOFTILE_EXERCISE_KERNEL("gemm", "03_shared", launch)
