// Judges the learner's kernel as rooftile's gemm: blocks of 512 threads, eight elements a thread.
#include "rooftile/exercise/gpu.h"
#include "rooftile/ops/gemm/gemm.problem.h"

#include ROOFTILE_EXERCISE

static rooftile::Status launch(const rooftile::CudaLaunch& where, const rooftile::GemmProblem& p) {
  if (p.empty()) return {};
  const auto blocks = [](std::int64_t size, int tile) {
    return static_cast<unsigned>((size + tile - 1) / tile);
  };
  return rooftile::cuda::launch(where, "gemm", {{blocks(p.n, 64), blocks(p.m, 64)}, 512}, gemm,
                                static_cast<const float*>(p.a), static_cast<const float*>(p.b),
                                static_cast<float*>(p.y), static_cast<int>(p.m), static_cast<int>(p.n),
                                static_cast<int>(p.k));
}
ROOFTILE_EXERCISE_KERNEL("gemm", "05_coarsened", launch)
