#pragma once
// Random words for lanes, the same on every machine: random_words<X>(stream, first) has the words of the
// elements from `first` on, in as many u32 lanes as a tile X has.
#include "rooftile/core/philox.h"
#if defined(__CUDACC__) || defined(ROOFTILE_EMULATED)
#include "rooftile/tile/cuda/philox.h"
#else
#include "rooftile/tile/cpu/philox.h"
#endif
