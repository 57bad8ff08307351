#include "rooftile/ops/gemm/gemm.codes.simt.h"
#include "rooftile/ops/nf4/nf4.product.gpu.h"

namespace rooftile::codes_gpu {
template Status launch_simt<nf4_gpu::Nf4Values>(const CudaLaunch&, const GemmCodes<Nf4Weight>&);
}
