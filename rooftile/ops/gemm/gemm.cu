// The GPU's products: tensor cores (gemm.mma.h), fused multiply-adds (gemm.simt.h), and the ladder.
#include "rooftile/ops/gemm/gemm.gpu.h"
#include "rooftile/ops/gemm/ladder/ladder_gpu.h"

namespace rooftile {
namespace {
Status launch_mma(const CudaLaunch& launch, const GemmProblem& p) {
  if (p.type == DType::i8) return gemm_gpu::launch_mma_i8(launch, p);
  return p.type == DType::tf32 ? gemm_gpu::launch_mma_tf32(launch, p) : gemm_gpu::launch_mma_16(launch, p);
}
}  // namespace

ROOFTILE_CUDA_KERNELS(gemm) = {
    entry<gemm_gpu::launch_hopper>("gemm", "wgmma", 90, true),
    entry<launch_mma>("gemm", "mma"),
    entry<gemm_gpu::launch_simt>("gemm", "simt"),
    entry<ladder::launch_gemm_mma>("gemm", "09_mma"),
    entry<ladder::launch_gemm_double_buffered>("gemm", "08_double_buffered"),
    entry<ladder::launch_gemm_vector_loads>("gemm", "07_vector_loads"),
    entry<ladder::launch_gemm_register_tile>("gemm", "06_register_tile"),
    entry<ladder::launch_gemm_coarsened>("gemm", "05_coarsened"),
    entry<ladder::launch_gemm_tile_size>("gemm", "04_tile_size"),
    entry<ladder::launch_gemm_shared>("gemm", "03_shared"),
    entry<ladder::launch_gemm_coalesced>("gemm", "02_coalesced"),
    entry<ladder::launch_gemm_naive>("gemm", "01_naive"),
    entry<ladder::launch_gemm_corner_turning>("gemm", "corner_turning"),
    {},
};

}  // namespace rooftile
