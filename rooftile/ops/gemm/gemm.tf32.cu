// Tensor cores, tf32 operands.
#include "rooftile/ops/gemm/gemm.mma.h"

namespace rooftile::gemm_gpu {
Status launch_mma_tf32(const CudaLaunch& launch, const GemmProblem& p) { return launch_mma<tf32>(launch, p); }
}  // namespace rooftile::gemm_gpu
