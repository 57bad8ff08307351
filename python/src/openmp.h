#pragma once
// The threads of the OpenMP runtime that PyTorch loaded. Its workers spin after each of PyTorch's operations,
// on the cores that threads of our own would need: layer_norm and its backward took 527 µs alone, and 7,229
// in turns with PyTorch's operations.
#include "rooftile/c.h"

namespace rooftile::python {

/// Runs on as many threads as PyTorch does now (torch.set_num_threads, OMP_NUM_THREADS). Null: PyTorch, or
/// its OpenMP, is not there, or the process was forked since, and OpenMP's threads with it are gone.
const rooftile_executor* pytorchs_threads();

}  // namespace rooftile::python
