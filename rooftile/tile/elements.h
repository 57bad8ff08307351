#pragma once
// Kernels that treat each element by itself, written once for all machines: a lane function, which takes a
// tile of each input and gives a tile (or a Pair of tiles) of the outputs, is run over whole tensors.
#include "rooftile/core/elements.h"
#include "rooftile/tile/kernels.h"
#include "rooftile/tile/tile.h"
#if defined(__CUDACC__) || defined(ROOFTILE_EMULATED)
#include "rooftile/tile/cuda/lanes.h"
#else
#include "rooftile/tile/cpu/lanes.h"
#endif
