#pragma once
// How the functions that stand for one instruction are written (ptx.h, matrices.h, hopper.h): for GPUs
// inlined assembly, for the emulated device a call of its engine, which is told the caller's place.
#include <cstdint>

#if defined(ROOFTILE_EMULATED)
#include "rooftile/backend/emulated/device/memory.h"
#define ROOFTILE_PTX __attribute__((always_inline)) inline
#define ROOFTILE_PTX_HERE , ROOFTILE_HERE
#define ROOFTILE_PTX_HERE_ONLY ROOFTILE_HERE
#else
#define ROOFTILE_PTX __device__ __forceinline__
#define ROOFTILE_PTX_HERE
#define ROOFTILE_PTX_HERE_ONLY
#endif
#if defined(ROOFTILE_EMULATED) || !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
#define ROOFTILE_HAS_SM90 1
#endif
// What only Hopper has, and no GPU after it: wgmma, setmaxnreg.
#if defined(ROOFTILE_EMULATED) || !defined(__CUDA_ARCH__) || defined(__CUDA_ARCH_FEAT_SM90_ALL)
#define ROOFTILE_HAS_HOPPER 1
#endif

#if !defined(ROOFTILE_EMULATED)
namespace rooftile::cuda::detail {
ROOFTILE_PTX std::uint32_t shared_address(const void* pointer) {
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(pointer));
}
}  // namespace rooftile::cuda::detail
#endif
