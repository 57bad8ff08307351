// Judges the learner's kernel as rooftile's gemm in bf16: blocks of four warps, 64 x 64 elements each.
#include "rooftile/exercise/gpu.h"
#include "rooftile/ops/gemm/gemm.problem.h"

#include ROOFTILE_EXERCISE

static rooftile::Status launch(const rooftile::CudaLaunch& where, const rooftile::GemmProblem& p) {
  if (p.empty()) return {};
  const auto blocks = [](std::int64_t size) { return static_cast<unsigned>((size + 63) / 64); };
  return rooftile::cuda::launch(where, "gemm", {{blocks(p.n), blocks(p.m)}, 128}, gemm,
                                static_cast<const rooftile::bf16*>(p.a),
                                static_cast<const rooftile::bf16*>(p.b), static_cast<rooftile::bf16*>(p.y),
                                static_cast<int>(p.m), static_cast<int>(p.n), static_cast<int>(p.k));
}
ROOFTILE_EXERCISE_KERNEL("gemm", "09_mma", launch)
