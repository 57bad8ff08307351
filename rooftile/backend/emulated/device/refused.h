#pragma once
// Names of CUDA that the emulated device does not have. Calling one is an error with a sentence, not a
// missing name.

#define ROOFTILE_REFUSED(name, sentence)                             \
  template <class... A>                                              \
  inline int name(A...) {                                            \
    static_assert(sizeof...(A) > 1000, "rooftile: " #name sentence); \
    return 0;                                                        \
  }
#define ROOFTILE_REFUSED_TEXTURE(name)                                                           \
  template <class T = int, class... A>                                                           \
  inline T name(A...) {                                                                          \
    static_assert(sizeof...(A) > 1000, "rooftile: the emulated device has no textures: " #name); \
    return T{};                                                                                  \
  }

#define ROOFTILE_LEGACY ": warp functions without _sync are gone from CUDA; name the lanes in a mask"
ROOFTILE_REFUSED(__shfl, ROOFTILE_LEGACY)
ROOFTILE_REFUSED(__shfl_up, ROOFTILE_LEGACY)
ROOFTILE_REFUSED(__shfl_down, ROOFTILE_LEGACY)
ROOFTILE_REFUSED(__shfl_xor, ROOFTILE_LEGACY)
ROOFTILE_REFUSED(__ballot, ROOFTILE_LEGACY)
ROOFTILE_REFUSED(__any, ROOFTILE_LEGACY)
ROOFTILE_REFUSED(__all, ROOFTILE_LEGACY)
#undef ROOFTILE_LEGACY

#ifndef ROOFTILE_EMULATED_PROGRAM  // a whole program has them: program/runtime.h
#define ROOFTILE_HOST " belongs to CUDA's host side; a kernel's source does not allocate, copy or wait"
ROOFTILE_REFUSED(cudaMalloc, ROOFTILE_HOST)
ROOFTILE_REFUSED(cudaFree, ROOFTILE_HOST)
ROOFTILE_REFUSED(cudaMemcpy, ROOFTILE_HOST)
ROOFTILE_REFUSED(cudaMemcpyAsync, ROOFTILE_HOST)
ROOFTILE_REFUSED(cudaMemset, ROOFTILE_HOST)
ROOFTILE_REFUSED(cudaMemcpyToSymbol, ROOFTILE_HOST)
ROOFTILE_REFUSED(cudaDeviceSynchronize, ROOFTILE_HOST)
#undef ROOFTILE_HOST
#endif

ROOFTILE_REFUSED(__pipeline_memcpy_async, ": write cp_async_16 from rooftile/backend/cuda/ptx.h")
ROOFTILE_REFUSED(__pipeline_commit, ": write cp_async_commit from rooftile/backend/cuda/ptx.h")
ROOFTILE_REFUSED(__pipeline_wait_prior, ": write cp_async_wait from rooftile/backend/cuda/ptx.h")
ROOFTILE_REFUSED(__match_all_sync, ": the emulated device has __match_any_sync only")

ROOFTILE_REFUSED_TEXTURE(tex1D)
ROOFTILE_REFUSED_TEXTURE(tex2D)
ROOFTILE_REFUSED_TEXTURE(tex3D)
ROOFTILE_REFUSED_TEXTURE(tex1Dfetch)
ROOFTILE_REFUSED_TEXTURE(surf2Dread)
#undef ROOFTILE_REFUSED
#undef ROOFTILE_REFUSED_TEXTURE
