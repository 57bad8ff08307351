"""A kernel in Numba, and six with a fault each, run by Numba's simulator: which faults show, and which do not. Lesson 15 tells of it.

NUMBA_ENABLE_CUDASIM=1 must be set before Numba is imported; this file sets it, unless it is called with --compile: that
compiles the same kernels to PTX, which needs libnvvm of the CUDA Toolkit, and no GPU.
"""

import os
import sys

COMPILE = "--compile" in sys.argv
if not COMPILE:
    os.environ["NUMBA_ENABLE_CUDASIM"] = "1"

import numpy as np
from numba import cuda

kernels = {}


def kernel(function):
    kernels[function.__name__] = function
    return function if COMPILE else cuda.jit(function)


# [right]
@kernel
def right(x, y):
    i = cuda.grid(1)
    if i < y.size:
        y[i] = x[i] + x[i]
# [/right]


# [seen]
@kernel
def no_guard(x, y):
    i = cuda.grid(1)
    y[i] = x[i] + x[i]


@kernel
def wrong_element(x, y):
    i = 2 * cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x
    if i < y.size:
        y[i] = x[i] + x[i]
# [/seen]


# [unseen_rules]
@kernel
def barrier_of_some(x, y):
    if cuda.threadIdx.x < 4:
        cuda.syncthreads()
    i = cuda.grid(1)
    if i < y.size:
        y[i] = x[i] + x[i]


@kernel
def numpys_own(x, y):
    i = cuda.grid(1)
    if i < y.size:
        y[i] = 2 * x[i:i + 1].sum()
# [/unseen_rules]


# [unseen_costs]
@kernel
def in_double(x, y):
    i = cuda.grid(1)
    if i < y.size:
        y[i] = 2.5 * x[i] - 0.5 * x[i]


@kernel
def lanes_far_apart(x, y):
    t, rows = cuda.grid(1), y.size // 16
    i = t % rows * 16 + t // rows
    if i < y.size:
        y[i] = x[i] + x[i]
# [/unseen_costs]


def verdict(function, n):
    """What a run of n elements by blocks of 8 threads shows."""
    x, y = np.arange(n, dtype=np.float32), np.full(n, np.nan, np.float32)
    try:
        function[(n + 7) // 8, 8](x, y)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    wrong = np.flatnonzero(y != 2 * x)
    return f"{wrong.size} of {n} wrong, the first: y[{wrong[0]}] is {y[wrong[0]]}" if wrong.size else "looks right"


def compiled(function):
    from numba import float32

    try:
        ptx, _ = cuda.compile_ptx(function, (float32[::1], float32[::1]), cc=(9, 0))
    except Exception as error:
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        return f"{type(error).__name__}: {lines[min(1, len(lines) - 1)] if lines else 'no words'}"
    return f"compiles: {ptx.count('.f64 ')} instructions on f64"


if __name__ == "__main__":
    if COMPILE and not compiled(right).startswith("compiles"):
        sys.exit(f"numba_simulator: --compile needs libnvvm of the CUDA Toolkit (CUDA_HOME): {compiled(right)}")
    for name, function in kernels.items():
        print(f"{name:16} {compiled(function) if COMPILE else verdict(globals()[name], 256 if name == 'lanes_far_apart' else 20)}")
