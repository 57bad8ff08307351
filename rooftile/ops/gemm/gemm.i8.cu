// Tensor cores, operands of 8-bit integers.
#include "rooftile/ops/gemm/gemm.mma.h"

namespace rooftile::gemm_gpu {
Status launch_mma_i8(const CudaLaunch& launch, const GemmProblem& p) {
  return launch_mma<std::int8_t>(launch, p);
}
}  // namespace rooftile::gemm_gpu
