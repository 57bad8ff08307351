#pragma once
#error "rooftile: the emulated device has no pipelines: write cp_async_16 from rooftile/backend/cuda/ptx.h"
