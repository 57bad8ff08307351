"""Matrix and vector in six languages: rooftile/ops/languages.py says how these functions are found, run and judged.

gemv is y = alpha·A·x + beta·c, geru a = alpha·x·yᵀ + c.
"""

import math

from languages import call_compiled, cuda, cute, cutlass, np, takes, tensors, tl, torch, trap, triton

THREADS = 64  # of a CUDA block


def wide(x):
    """What halves are added and multiplied in: f32."""
    return x if x.dtype == np.float64 else x.astype(np.float32)


def wide_torch(x):
    return x if x.dtype == torch.float64 else x.float()


# [gemv_plain]
def gemv_plain(a, x, c=None, alpha=1.0, beta=0.0):
    """Row by row: a dot product each. beta = 0 means that c is not read: 0 · NaN is not 0."""
    y = []
    for i, row in enumerate(a):
        terms = [left * right for left, right in zip(row, x)]
        total = alpha * (math.fsum(terms) if all(map(math.isfinite, terms)) else sum(terms))
        y.append(total + beta * c[i] if beta != 0 else total)
    return y
# [/gemv_plain]


# [gemv_plain_nan]
@trap("beta = 0 still reads c, and 0 · NaN is NaN")
def gemv_plain_nan(a, x, c=None, alpha=1.0, beta=0.0):
    y = gemv_plain(a, x, alpha=alpha)
    return [value + beta * old for value, old in zip(y, c)] if c else y
# [/gemv_plain_nan]


# [gemv_numpy]
def gemv_numpy(a, x, c=None, alpha=1.0, beta=0.0):
    with np.errstate(all="ignore"):
        y = np.einsum("ij,j->i", a.astype(np.float64), x.astype(np.float64)) * alpha
        return (y + beta * c.astype(np.float64) if beta != 0 else y).astype(a.dtype)
# [/gemv_numpy]


# [gemv_torch]
def gemv_torch(a, x, c=None, alpha=1.0, beta=0.0):
    y = alpha * (a.double() * x.double()).sum(-1)
    return (y + beta * c.double() if beta != 0 else y).to(a.dtype)
# [/gemv_torch]


# [gemv_triton]
@triton.jit
def gemv_kernel(a, x, c, y, columns, alpha, beta, READS: tl.constexpr, BLOCK: tl.constexpr):
    """One program, one row, BLOCK columns at a time: a sum for each lane, which become one at the end."""
    row = tl.program_id(0).to(tl.int64)
    sums = tl.zeros([BLOCK], tl.float32)
    for first in range(0, columns, BLOCK):
        at = first + tl.arange(0, BLOCK)
        left = tl.load(a + row * columns + at, mask=at < columns, other=0.0).to(tl.float32)
        sums += left * tl.load(x + at, mask=at < columns, other=0.0).to(tl.float32)
    total = alpha * tl.sum(sums)
    if READS:
        total += beta * tl.load(c + row).to(tl.float32)
    tl.store(y + row, total.to(y.dtype.element_ty))


@takes(dtypes=("f32", "f16", "bf16"))  # a float argument of a Triton kernel is an f32
def gemv_triton(a, x, c=None, alpha=1.0, beta=0.0):
    y = a.new_empty(a.shape[0])
    if y.numel() > 0:
        gemv_kernel[(a.shape[0],)](a, x, y if c is None else c, y, a.shape[1], alpha, beta, beta != 0, BLOCK=256)
    return y
# [/gemv_triton]


# [gemv_numba]
@cuda.jit
def gemv_threads(a, x, c, y, alpha, beta):
    """One block, one row: its threads' sums become one in shared memory."""
    sums = cuda.shared.array(THREADS, np.float64)
    thread, row = cuda.threadIdx.x, cuda.blockIdx.x
    sums[thread] = 0
    for j in range(thread, a.shape[1], THREADS):
        sums[thread] += np.float64(a[row, j]) * np.float64(x[j])
    cuda.syncthreads()
    half = THREADS // 2
    while half > 0:
        if thread < half:
            sums[thread] += sums[thread + half]
        cuda.syncthreads()
        half //= 2
    if thread == 0:
        y[row] = alpha * sums[0] + beta * np.float64(c[row]) if beta != 0 else alpha * sums[0]


def gemv_numba(a, x, c=None, alpha=1.0, beta=0.0):
    y = cuda.device_array(a.shape[0], a.dtype)
    if a.shape[0] > 0:
        gemv_threads[a.shape[0], THREADS](a, x, y if c is None else c, y, float(alpha), float(beta))
    return y
# [/gemv_numba]


# [gemv_cute]
@cute.kernel
def gemv_warps(a, x, c, y, alpha, beta, reads: cutlass.Constexpr):
    """One block is one warp, and has one row: a sum for each lane, which become one by halves."""
    lane, row = cute.arch.thread_idx()[0], cute.arch.block_idx()[0]
    total = cutlass.Float32(0)
    for j in range(lane, cute.size(x), 32):
        total += cutlass.Float32(a[row, j]) * cutlass.Float32(x[j])
    for step in (16, 8, 4, 2, 1):
        total += cute.arch.shuffle_sync_bfly(total, offset=step)
    if lane == 0:
        total = alpha * total
        if cutlass.const_expr(reads):
            total += beta * cutlass.Float32(c[row])
        y[row] = y.element_type(total)


@cute.jit
def gemv_launch(a, x, c, y, alpha: cutlass.Float32, beta: cutlass.Float32, reads: cutlass.Constexpr, stream):
    gemv_warps(a, x, c, y, alpha, beta, reads).launch(grid=(cute.size(y), 1, 1), block=(32, 1, 1), stream=stream)


@takes(dtypes=("f32", "f16", "bf16"))
def gemv_cute(a, x, c=None, alpha=1.0, beta=0.0):
    y = a.new_empty(a.shape[0])
    if a.numel() == 0:
        return y.zero_() if beta == 0 else (beta * c.float()).to(c.dtype)
    operands = *tensors(a, x, y if c is None else c, y), cutlass.Float32(alpha), cutlass.Float32(beta)
    call_compiled(gemv_launch, (a.dtype, beta != 0), *operands, beta != 0, cutlass.torch.current_stream())
    return y
# [/gemv_cute]


# [gemv_backward_numpy]
def gemv_backward_numpy(a, x, dy, alpha=1.0, beta=0.0):
    a, x, dy, dtype = *(v.astype(np.float64) for v in (a, x, dy)), a.dtype
    with np.errstate(all="ignore"):
        made = alpha * dy[:, None] * x, alpha * np.einsum("ij,i->j", a, dy), beta * dy if beta != 0 else np.zeros_like(dy)
        return tuple(v.astype(dtype) for v in made)
# [/gemv_backward_numpy]


# [gemv_backward_torch]
def gemv_backward_torch(a, x, dy, alpha=1.0, beta=0.0):
    dtype, a, x, dy = a.dtype, a.double(), x.double(), dy.double()
    made = alpha * dy[:, None] * x, alpha * (a * dy[:, None]).sum(0), beta * dy if beta != 0 else torch.zeros_like(dy)
    return tuple(v.to(dtype) for v in made)
# [/gemv_backward_torch]


# [geru_plain]
def geru_plain(x, y, c=None, alpha=1.0):
    return [[alpha * (left * right) + (c[i][j] if c else 0) for j, right in enumerate(y)] for i, left in enumerate(x)]
# [/geru_plain]


# [geru_plain_swapped]
@takes(dtypes=("f32",))
@trap("x and y have changed places; where both have one length, no shape says so")
def geru_plain_swapped(x, y, c=None, alpha=1.0):
    if len(x) == len(y):
        return geru_plain(y, x, c, alpha)
    return geru_plain(x, y, c, alpha)
# [/geru_plain_swapped]


# [geru_numpy]
def geru_numpy(x, y, c=None, alpha=1.0):
    with np.errstate(all="ignore"):
        a = alpha * np.multiply.outer(x.astype(np.float64), y.astype(np.float64))
        return (a if c is None else a + c.astype(np.float64)).astype(x.dtype)
# [/geru_numpy]


# [geru_torch]
def geru_torch(x, y, c=None, alpha=1.0):
    a = alpha * torch.outer(x.double(), y.double())
    return (a if c is None else a + c.double()).to(x.dtype)
# [/geru_torch]


# [geru_triton]
@triton.jit
def geru_kernel(x, y, c, a, columns, alpha, ADDS: tl.constexpr, BLOCK: tl.constexpr):
    """One program, BLOCK elements of a row."""
    row = tl.program_id(0).to(tl.int64)
    j = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    values = alpha * (tl.load(x + row).to(tl.float32) * tl.load(y + j, mask=j < columns).to(tl.float32))
    if ADDS:
        values += tl.load(c + row * columns + j, mask=j < columns).to(tl.float32)
    tl.store(a + row * columns + j, values.to(a.dtype.element_ty), mask=j < columns)


@takes(dtypes=("f32", "f16", "bf16"))
def geru_triton(x, y, c=None, alpha=1.0):
    a = x.new_empty(len(x), len(y))
    if a.numel() > 0:
        grid = len(x), triton.cdiv(len(y), 256)
        geru_kernel[grid](x, y, a if c is None else c, a, len(y), alpha, c is not None, BLOCK=256)
    return a
# [/geru_triton]


# [geru_numba]
@cuda.jit
def geru_threads(x, y, c, a, alpha, adds):
    """One thread, one element."""
    i, j = cuda.blockIdx.y, cuda.grid(1)
    if j < a.shape[1]:
        value = alpha * (np.float64(x[i]) * np.float64(y[j]))
        a[i, j] = value + np.float64(c[i, j]) if adds else value


def geru_numba(x, y, c=None, alpha=1.0):
    a = cuda.device_array((len(x), len(y)), x.dtype)
    if a.size > 0:
        grid = (len(y) + THREADS - 1) // THREADS, len(x)
        geru_threads[grid, THREADS](x, y, a if c is None else c, a, float(alpha), c is not None)
    return a
# [/geru_numba]


# [geru_cute]
@cute.kernel
def geru_elements(x, y, c, a, alpha, adds: cutlass.Constexpr):
    """One thread, one element."""
    row, j = cute.arch.block_idx()[0], cute.arch.block_idx()[1] * THREADS + cute.arch.thread_idx()[0]
    if j < cute.size(y):
        value = alpha * (cutlass.Float32(x[row]) * cutlass.Float32(y[j]))
        if cutlass.const_expr(adds):
            value += cutlass.Float32(c[row, j])
        a[row, j] = a.element_type(value)


@cute.jit
def geru_launch(x, y, c, a, alpha: cutlass.Float32, adds: cutlass.Constexpr, stream):
    grid = (cute.size(x), cute.ceil_div(cute.size(y), THREADS), 1)
    geru_elements(x, y, c, a, alpha, adds).launch(grid=grid, block=(THREADS, 1, 1), stream=stream)


@takes(dtypes=("f32", "f16", "bf16"))
def geru_cute(x, y, c=None, alpha=1.0):
    a = x.new_empty(len(x), len(y))
    if a.numel() > 0:
        operands = *tensors(x, y, a if c is None else c, a), cutlass.Float32(alpha)
        call_compiled(geru_launch, (x.dtype, c is not None), *operands, c is not None, cutlass.torch.current_stream())
    return a
# [/geru_cute]


# [geru_backward_numpy]
def geru_backward_numpy(x, y, da, alpha=1.0):
    wide, dtype = da.astype(np.float64), x.dtype
    with np.errstate(all="ignore"):
        dx = alpha * np.einsum("ij,j->i", wide, y.astype(np.float64))
        dy = alpha * np.einsum("ij,i->j", wide, x.astype(np.float64))
        return dx.astype(dtype), dy.astype(dtype), da.copy()
# [/geru_backward_numpy]


# [geru_backward_torch]
def geru_backward_torch(x, y, da, alpha=1.0):
    wide = da.double()
    return (alpha * wide @ y.double()).to(x.dtype), (alpha * wide.mT @ x.double()).to(x.dtype), da.clone()
# [/geru_backward_torch]
