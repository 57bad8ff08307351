#pragma once
#include <cuda_runtime.h>

namespace rooftile::cuda {

/// On the current device; errors stay for cudaGetLastError.
void launch_empty_kernel(cudaStream_t stream);

}  // namespace rooftile::cuda
