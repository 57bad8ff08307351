#include "rooftile/ops/gemm/gemm.codes.simt.h"
#include "rooftile/ops/int4/int4.product.gpu.h"

namespace rooftile::codes_gpu {
template Status launch_simt<int4_gpu::Int4Values>(const CudaLaunch&, const GemmCodes<Int4Weight>&);
}
