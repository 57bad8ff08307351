#pragma once
// The GPU's rungs: one product, row by row without gaps. f32, 09_mma: bf16; corner_turning: B by columns.
#include "rooftile/backend/cuda/launch.h"
#include "rooftile/core/plugin.h"
#include "rooftile/ops/gemm/gemm.problem.h"

namespace rooftile::ladder {

Status launch_gemm_naive(const CudaLaunch& launch, const GemmProblem& problem);
Status launch_gemm_coalesced(const CudaLaunch& launch, const GemmProblem& problem);
Status launch_gemm_shared(const CudaLaunch& launch, const GemmProblem& problem);
Status launch_gemm_tile_size(const CudaLaunch& launch, const GemmProblem& problem);
Status launch_gemm_coarsened(const CudaLaunch& launch, const GemmProblem& problem);
Status launch_gemm_register_tile(const CudaLaunch& launch, const GemmProblem& problem);
Status launch_gemm_vector_loads(const CudaLaunch& launch, const GemmProblem& problem);
Status launch_gemm_double_buffered(const CudaLaunch& launch, const GemmProblem& problem);
Status launch_gemm_mma(const CudaLaunch& launch, const GemmProblem& problem);
Status launch_gemm_corner_turning(const CudaLaunch& launch, const GemmProblem& problem);

inline unsigned tiles_of(std::int64_t size, int tile) {
  return static_cast<unsigned>((size + tile - 1) / tile);
}
/// The kernel on p's matrices.
template <class T, class Y>
Status launch_gemm(const CudaLaunch& launch, const GemmProblem& p, const cuda::Grid& grid,
                   void (*kernel)(const T*, const T*, Y*, int, int, int)) {
  if (p.empty()) return {};
  return cuda::launch(launch, "gemm", grid, kernel, static_cast<const T*>(p.a), static_cast<const T*>(p.b),
                      static_cast<Y*>(p.y), static_cast<int>(p.m), static_cast<int>(p.n),
                      static_cast<int>(p.k));
}

}  // namespace rooftile::ladder
