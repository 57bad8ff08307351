#include "rooftile/ops/gemm/gemm.codes.few.h"
#include "rooftile/ops/nf4/nf4.product.gpu.h"

namespace rooftile::codes_gpu {
template Status launch_few<nf4_gpu::Nf4Values>(const CudaLaunch&, const GemmCodes<Nf4Weight>&);
}
