#pragma once
// An op folder's <op>.kernels.cpp, which every machine's compiler reads, lists its launches by
//   ROOFTILE_KERNELS(activation) = {entry<launch_relu>("relu", "tile"), …, {}};
#include "rooftile/core/plugin.h"

namespace rooftile::tile {
#if defined(__CUDACC__) || defined(ROOFTILE_EMULATED)
inline namespace cuda {
using Launch = CudaLaunch;
}
#define ROOFTILE_KERNELS(folder) ROOFTILE_CUDA_KERNELS(folder)
#else
inline namespace ROOFTILE_ISA {
using Launch = CpuLaunch;
}
#define ROOFTILE_KERNELS(folder) ROOFTILE_CPU_KERNELS(folder)
#endif
}  // namespace rooftile::tile
