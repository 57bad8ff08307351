#include "rooftile/ops/dyt/ladder/ladder.h"

namespace rooftile {

// What dyt.kernels.cpp has not.
ROOFTILE_CUDA_KERNELS(dyt_rest) = {
    entry<ladder::launch_dyt_backward_words>("dyt_backward", "03_words"),
    entry<ladder::launch_dyt_backward_blocks>("dyt_backward", "02_blocks"),
    entry<ladder::launch_dyt_backward_naive>("dyt_backward", "01_naive"),
    {},
};

}  // namespace rooftile
