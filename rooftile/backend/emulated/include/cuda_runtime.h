#pragma once
// CUDA C++ for the emulated device: what a kernel says, understood by g++ and clang++ without the CUDA
// toolkit. The subset is told in docs/emulated-device.md; what lies outside is refused with a sentence
// (device/refused.h).

#include <cmath>
#include <cstdint>
#include <cstring>

#include "rooftile/backend/emulated/device/arithmetic.h"
#include "rooftile/backend/emulated/device/memory.h"
#include "rooftile/backend/emulated/device/refused.h"
#include "rooftile/backend/emulated/device/threads.h"
#include "rooftile/backend/emulated/device/vectors.h"
#include "rooftile/backend/emulated/device/words.h"

#ifdef ROOFTILE_EMULATED_PROGRAM
#include "rooftile/backend/emulated/program/runtime.h"
#endif

#include <assert.h>  // ours: a failed assert in a kernel ends the launch with a sentence
