#pragma once
// The words that CUDA adds to C++. Most mean nothing here: everything runs on the CPU.

#include <memory>  // spells `__noinline__`, which is a word of CUDA's below: it comes first
#define __global__
#define __device__
#define __host__
#define __constant__
#define __grid_constant__
#define __launch_bounds__(...)
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#define __align__(n) __attribute__((aligned(n)))

// A static array would be one for all blocks, without bounds: each block has an arena, and this tells it what
// to hold.
// (A pragma takes one string, unbroken: short ones.)
#define __shared__ _Pragma("GCC error \"rooftile: declare shared memory with ROOFTILE_SHARED(name, type)\"")
#define __managed__ _Pragma("GCC error \"rooftile: the emulated device has no managed memory\"")
