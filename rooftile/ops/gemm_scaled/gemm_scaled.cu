// The GPU's products of codes: tensor cores (gemm_scaled.mma.h; gemm_scaled.hopper.h, of codes and of halves;
// gemm_scaled.few.cu) and fused multiply-adds (gemm_scaled.simt.cu).
#include "rooftile/ops/gemm_scaled/gemm_scaled.gpu.h"

namespace rooftile {
namespace {
Status launch_mma(const CudaLaunch& launch, const GemmScaledProblem& p) {
  if (p.product.empty()) return {};
  return p.integers() ? scaled_gpu::launch_mma_i8(launch, p) : scaled_gpu::launch_mma_f8(launch, p);
}
Status launch_hopper(const CudaLaunch& launch, const GemmScaledProblem& p) {
  return p.integers() ? scaled_gpu::launch_hopper_i8(launch, p) : scaled_gpu::launch_hopper_halves(launch, p);
}
}  // namespace

ROOFTILE_CUDA_KERNELS(gemm_scaled) = {
    entry<scaled_gpu::launch_few>("gemm_scaled", "few_rows"),
    entry<launch_hopper>("gemm_scaled", "wgmma", 90, true),
    entry<scaled_gpu::launch_hopper_f8>("gemm_scaled", "wgmma_f8", 90, true),
    entry<launch_mma>("gemm_scaled", "mma"),
    entry<scaled_gpu::launch_simt>("gemm_scaled", "simt"),
    {},
};

}  // namespace rooftile
