#pragma once
// Kernels that treat each element by itself, written once for all machines: a lane function, which takes a
// tile of each input and gives a tile (or a Pair of tiles) of the outputs, is run over whole tensors.
#include "rooftile/core/elements.h"
#if defined(__CUDACC__) || defined(ROOFTILE_EMULATED)
#include "rooftile/tile/cuda/lanes.h"
#else
#include "rooftile/tile/cpu/lanes.h"
#endif

/// An op folder's <op>.kernels.cpp, which every machine's compiler reads, lists its launches by
///   ROOFTILE_KERNELS(activation) = {entry<launch_relu>("relu", "tile"), …, {}};
#if defined(__CUDACC__) || defined(ROOFTILE_EMULATED)
#define ROOFTILE_KERNELS(folder) ROOFTILE_CUDA_KERNELS(folder)
#else
#define ROOFTILE_KERNELS(folder) ROOFTILE_CPU_KERNELS(folder)
#endif
