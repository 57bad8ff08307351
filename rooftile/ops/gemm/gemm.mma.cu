// Tensor cores, 16-bit operands.
#include "rooftile/ops/gemm/gemm.mma.h"

namespace rooftile::gemm_gpu {
Status launch_mma_16(const CudaLaunch& launch, const GemmProblem& p) {
  return p.type == DType::bf16 ? launch_mma<bf16>(launch, p) : launch_mma<f16>(launch, p);
}
}  // namespace rooftile::gemm_gpu
