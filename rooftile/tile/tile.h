#pragma once
// The block language: what a kernel sees. One program computes one row, one column block or one tile, run by
// a team: on a CPU a thread with its vector registers, on a GPU 1 to 1024 threads. Kernels see chunks of
// lanes, and never a lane's index. `docs/block-language.md` tells it in order.
#if defined(__CUDACC__) || defined(ROOFTILE_EMULATED)
#include "rooftile/tile/cuda/team.h"
#else
#include "rooftile/tile/cpu/team.h"
#endif
