#include "rooftile/ops/gemm/gemm.codes.mma.h"
#include "rooftile/ops/nf4/nf4.product.gpu.h"

namespace rooftile::codes_gpu {
template Status launch_mma<nf4_gpu::Nf4Values>(const CudaLaunch&, const GemmCodes<Nf4Weight>&);
}
