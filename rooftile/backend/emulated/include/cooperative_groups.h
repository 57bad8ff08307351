#pragma once
#error \
    "rooftile: the emulated device has no cooperative groups: write __syncthreads, __syncwarp or rooftile/backend/cuda/ptx.h"
