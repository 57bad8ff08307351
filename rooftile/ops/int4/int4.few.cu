#include "rooftile/ops/gemm/gemm.codes.few.h"
#include "rooftile/ops/int4/int4.product.gpu.h"

namespace rooftile::codes_gpu {
template Status launch_few<int4_gpu::Int4Values>(const CudaLaunch&, const GemmCodes<Int4Weight>&);
}
