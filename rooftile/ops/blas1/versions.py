"""Vectors in seven languages: rooftile/ops/languages.py says how these functions are found, run and judged."""

import math

from languages import call_compiled, ct, cuda, cute, cutlass, np, takes, tensors, tl, torch, trap, triton

BLOCK = 1024  # elements of a program of Triton or cuTile
THREADS = 64  # of a CUDA block


def wide(x):
    """What halves are added and multiplied in: f32."""
    return x if x.dtype == np.float64 else x.astype(np.float32)


def wide_torch(x):
    return x if x.dtype == torch.float64 else x.float()


def blocks(n):
    return (n + THREADS - 1) // THREADS


# [copy_plain]
def copy_plain(x):
    y = [0] * len(x)
    for i in range(len(x)):
        y[i] = x[i]
    return y
# [/copy_plain]


# [copy_numpy]
def copy_numpy(x):
    return x.copy()
# [/copy_numpy]


# [copy_torch]
def copy_torch(x):
    return x.clone()
# [/copy_torch]


# [copy_triton]
@triton.jit
def copy_kernel(x, y, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(y + offsets, tl.load(x + offsets, mask=mask), mask=mask)


def copy_triton(x):
    y = torch.empty_like(x)
    if x.numel() > 0:
        copy_kernel[(triton.cdiv(x.numel(), BLOCK),)](x, y, x.numel(), BLOCK=BLOCK)
    return y
# [/copy_triton]


# [copy_numba]
@cuda.jit
def copy_threads(x, y):
    i = cuda.grid(1)
    if i < x.size:
        y[i] = x[i]


def copy_numba(x):
    y = cuda.device_array(x.shape, x.dtype)
    if x.size > 0:
        copy_threads[blocks(x.size), THREADS](x, y)
    return y
# [/copy_numba]


# [copy_cutile]
@ct.kernel
def copy_tiles(x, y):
    """A tile that sticks out is loaded and stored as far as the array goes: no mask."""
    tile = (ct.bid(0),)
    ct.store(y, tile, ct.load(x, tile, (BLOCK,)))


def copy_cutile(x):
    y = torch.empty_like(x)
    if x.numel() > 0:
        ct.launch(torch.cuda.current_stream(), (ct.cdiv(x.numel(), BLOCK),), copy_tiles, (x, y))
    return y
# [/copy_cutile]


# [copy_cute]
@cute.kernel
def copy_elements(x, y):
    i = cute.arch.block_idx()[0] * THREADS + cute.arch.thread_idx()[0]
    if i < cute.size(y):
        y[i] = x[i]


@cute.jit
def copy_launch(x, y, stream):
    grid = (cute.ceil_div(cute.size(y), THREADS), 1, 1)
    copy_elements(x, y).launch(grid=grid, block=(THREADS, 1, 1), stream=stream)


def copy_cute(x):
    y = torch.empty_like(x)
    if x.numel() > 0:
        call_compiled(copy_launch, x.dtype, *tensors(x, y), cutlass.torch.current_stream())
    return y
# [/copy_cute]


# [swap_plain]
def swap_plain(x, y):
    for i in range(len(x)):
        x[i], y[i] = y[i], x[i]
    return x, y
# [/swap_plain]


# [swap_numpy]
def swap_numpy(x, y):
    return y.copy(), x.copy()
# [/swap_numpy]


# [swap_torch]
def swap_torch(x, y):
    return y.clone(), x.clone()
# [/swap_torch]


# [swap_triton]
def swap_triton(x, y):
    """Two copies: a new x and a new y. In place, one kernel would load both and store both."""
    return copy_triton(y), copy_triton(x)
# [/swap_triton]


# [swap_numba]
def swap_numba(x, y):
    return copy_numba(y), copy_numba(x)
# [/swap_numba]


# [swap_cute]
def swap_cute(x, y):
    return copy_cute(y), copy_cute(x)
# [/swap_cute]


# [scal_plain]
def scal_plain(x, alpha=1.0):
    y = [0.0] * len(x)
    for i in range(len(x)):
        y[i] = alpha * x[i]
    return y
# [/scal_plain]


# [scal_numpy]
def scal_numpy(x, alpha=1.0):
    """`alpha * x` alone would round alpha to half precision first, where x is f16."""
    return (alpha * wide(x)).astype(x.dtype)
# [/scal_numpy]


# [scal_torch]
def scal_torch(x, alpha=1.0):
    return (alpha * wide_torch(x)).to(x.dtype)
# [/scal_torch]


# [scal_triton]
@triton.jit
def scal_kernel(x, y, n, alpha, BLOCK: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    values = alpha * tl.load(x + offsets, mask=mask).to(tl.float32)
    tl.store(y + offsets, values.to(y.dtype.element_ty), mask=mask)


@takes(dtypes=("f32", "f16", "bf16"))  # a float argument of a Triton kernel is an f32
def scal_triton(x, alpha=1.0):
    y = torch.empty_like(x)
    if x.numel() > 0:
        scal_kernel[(triton.cdiv(x.numel(), BLOCK),)](x, y, x.numel(), alpha, BLOCK=BLOCK)
    return y
# [/scal_triton]


# [scal_numba]
@cuda.jit
def scal_threads(x, y, alpha):
    i = cuda.grid(1)
    if i < x.size:
        y[i] = alpha * x[i]


def scal_numba(x, alpha=1.0):
    y = cuda.device_array(x.shape, x.dtype)
    if x.size > 0:
        scal_threads[blocks(x.size), THREADS](x, y, x.dtype.type(alpha))
    return y
# [/scal_numba]


# [scal_cute]
@cute.kernel
def scal_elements(x, y, alpha):
    i = cute.arch.block_idx()[0] * THREADS + cute.arch.thread_idx()[0]
    if i < cute.size(y):
        y[i] = y.element_type(alpha * cutlass.Float32(x[i]))


@cute.jit
def scal_launch(x, y, alpha: cutlass.Float32, stream):
    grid = (cute.ceil_div(cute.size(y), THREADS), 1, 1)
    scal_elements(x, y, alpha).launch(grid=grid, block=(THREADS, 1, 1), stream=stream)


@takes(dtypes=("f32", "f16", "bf16"))
def scal_cute(x, alpha=1.0):
    y = torch.empty_like(x)
    if x.numel() > 0:
        call_compiled(scal_launch, x.dtype, *tensors(x, y), cutlass.Float32(alpha), cutlass.torch.current_stream())
    return y
# [/scal_cute]


# [axpby_plain]
def axpby_plain(x, y, alpha=1.0, beta=1.0):
    """Returns the new y. A factor of 0 means that its operand is not read: 0 · NaN is not 0."""
    z = [0.0] * len(y)
    for i in range(len(y)):
        if alpha != 0:
            z[i] += alpha * x[i]
        if beta != 0:
            z[i] += beta * y[i]
    return z
# [/axpby_plain]


# [axpby_plain_nan]
@trap("β = 0 still reads y, and 0 · NaN is NaN")
def axpby_plain_nan(x, y, alpha=1.0, beta=1.0):
    return [alpha * a + beta * b for a, b in zip(x, y)]
# [/axpby_plain_nan]


# [axpby_numpy]
def axpby_numpy(x, y, alpha=1.0, beta=1.0):
    left = alpha * wide(x) if alpha != 0 else 0
    right = beta * wide(y) if beta != 0 else 0
    return np.broadcast_to(left + right, y.shape).astype(y.dtype)
# [/axpby_numpy]


# [axpby_torch]
def axpby_torch(x, y, alpha=1.0, beta=1.0):
    left = alpha * wide_torch(x) if alpha != 0 else 0
    right = beta * wide_torch(y) if beta != 0 else torch.zeros_like(wide_torch(y))
    return (left + right).to(y.dtype)
# [/axpby_torch]


# [axpby_triton]
@triton.jit
def axpby_kernel(x, y, z, n, alpha, beta, READ_X: tl.constexpr, READ_Y: tl.constexpr, BLOCK: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    result = tl.zeros((BLOCK,), tl.float32)
    if READ_X:
        result += alpha * tl.load(x + offsets, mask=mask).to(tl.float32)
    if READ_Y:
        result += beta * tl.load(y + offsets, mask=mask).to(tl.float32)
    tl.store(z + offsets, result.to(z.dtype.element_ty), mask=mask)


@takes(dtypes=("f32", "f16", "bf16"))
def axpby_triton(x, y, alpha=1.0, beta=1.0):
    z, n = torch.empty_like(y), y.numel()
    if n > 0:
        axpby_kernel[(triton.cdiv(n, BLOCK),)](x, y, z, n, alpha, beta, alpha != 0, beta != 0, BLOCK=BLOCK)
    return z
# [/axpby_triton]


# [axpby_numba]
@cuda.jit
def axpby_threads(x, y, z, alpha, beta):
    i = cuda.grid(1)
    if i < z.size:
        left = alpha * x[i] if alpha != 0 else alpha
        right = beta * y[i] if beta != 0 else beta
        z[i] = left + right


def axpby_numba(x, y, alpha=1.0, beta=1.0):
    z = cuda.device_array(y.shape, y.dtype)
    if y.size > 0:
        axpby_threads[blocks(y.size), THREADS](x, y, z, y.dtype.type(alpha), y.dtype.type(beta))
    return z
# [/axpby_numba]


# [axpby_cutile]
@ct.kernel
def axpby_tiles(x, y, z, alpha, beta, READ_X: ct.Constant[bool], READ_Y: ct.Constant[bool]):
    tile = (ct.bid(0),)
    result = ct.zeros((BLOCK,), ct.float32)
    if READ_X:
        result += alpha * ct.load(x, tile, (BLOCK,)).astype(ct.float32)
    if READ_Y:
        result += beta * ct.load(y, tile, (BLOCK,)).astype(ct.float32)
    ct.store(z, tile, result.astype(z.dtype))


@takes(dtypes=("f32", "f16", "bf16"))  # a float argument is an f32
def axpby_cutile(x, y, alpha=1.0, beta=1.0):
    z, n = torch.empty_like(y), y.numel()
    if n > 0:
        arguments = (x, y, z, alpha, beta, alpha != 0, beta != 0)
        ct.launch(torch.cuda.current_stream(), (ct.cdiv(n, BLOCK),), axpby_tiles, arguments)
    return z
# [/axpby_cutile]


# [axpby_cute]
@cute.kernel
def axpby_elements(x, y, z, alpha, beta):
    i = cute.arch.block_idx()[0] * THREADS + cute.arch.thread_idx()[0]
    if i < cute.size(z):
        result = cutlass.Float32(0)
        if alpha != 0:
            result += alpha * cutlass.Float32(x[i])
        if beta != 0:
            result += beta * cutlass.Float32(y[i])
        z[i] = z.element_type(result)


@cute.jit
def axpby_launch(x, y, z, alpha: cutlass.Float32, beta: cutlass.Float32, stream):
    grid = (cute.ceil_div(cute.size(z), THREADS), 1, 1)
    axpby_elements(x, y, z, alpha, beta).launch(grid=grid, block=(THREADS, 1, 1), stream=stream)


@takes(dtypes=("f32", "f16", "bf16"))
def axpby_cute(x, y, alpha=1.0, beta=1.0):
    z = torch.empty_like(y)
    if z.numel() > 0:
        factors = cutlass.Float32(alpha), cutlass.Float32(beta)
        call_compiled(axpby_launch, z.dtype, *tensors(x, y, z), *factors, cutlass.torch.current_stream())
    return z
# [/axpby_cute]


# [add_plain]
def add_plain(x, y):
    """One element after another; x and y are lists of the same length."""
    z = [0.0] * len(x)
    for i in range(len(x)):
        z[i] = x[i] + y[i]
    return z
# [/add_plain]


# [add_plain_blocks]
def add_plain_blocks(x, y, block=4):
    """The same, a block of elements at a time: what each Triton program does, one program after another."""
    n = len(x)
    z = [0.0] * n
    for program in range((n + block - 1) // block):
        offsets = [program * block + i for i in range(block)]
        mask = [offset < n for offset in offsets]
        a = [x[offset] if live else None for offset, live in zip(offsets, mask)]
        b = [y[offset] if live else None for offset, live in zip(offsets, mask)]
        for offset, live, left, right in zip(offsets, mask, a, b):
            if live:
                z[offset] = left + right
    return z
# [/add_plain_blocks]


# [add_numpy]
def add_numpy(x, y):
    return x + y
# [/add_numpy]


# [add_torch]
def add_torch(x, y):
    """What one would write: PyTorch holds the kernel."""
    return x + y
# [/add_torch]


# [add_kernel]
@triton.jit
def add_kernel(x, y, z, n, BLOCK: tl.constexpr):
    program = tl.program_id(0).to(tl.int64)
    offsets = program * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    a = tl.load(x + offsets, mask=mask)
    b = tl.load(y + offsets, mask=mask)
    tl.store(z + offsets, a + b, mask=mask)
# [/add_kernel]


# [add_triton]
def add_triton(x, y):
    """x and y are contiguous, on one device."""
    z = torch.empty_like(x)
    n, block = x.numel(), 1024
    if n > 0:
        add_kernel[(triton.cdiv(n, block),)](x, y, z, n, BLOCK=block)
    return z
# [/add_triton]


# [add_triton_first_block]
@triton.jit
def add_first_block(x, y, z, n, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(z + offsets, tl.load(x + offsets, mask=mask) + tl.load(y + offsets, mask=mask), mask=mask)


@trap("the program id is never read: every program computes block 0")
def add_triton_first_block(x, y):
    z = torch.empty_like(x)
    if x.numel() > 0:
        add_first_block[(triton.cdiv(x.numel(), BLOCK),)](x, y, z, x.numel(), BLOCK=BLOCK)
    return z
# [/add_triton_first_block]


# [add_numba]
@cuda.jit
def add_threads(x, y, z):
    i = cuda.grid(1)
    if i < z.size:
        z[i] = x[i] + y[i]


def add_numba(x, y):
    z = cuda.device_array(x.shape, x.dtype)
    if z.size > 0:
        add_threads[blocks(z.size), THREADS](x, y, z)
    return z
# [/add_numba]


# [add_cute]
@cute.kernel
def add_elements(x, y, z):
    i = cute.arch.block_idx()[0] * THREADS + cute.arch.thread_idx()[0]
    if i < cute.size(z):
        z[i] = z.element_type(cutlass.Float32(x[i]) + cutlass.Float32(y[i]))


@cute.jit
def add_launch(x, y, z, stream):
    grid = (cute.ceil_div(cute.size(z), THREADS), 1, 1)
    add_elements(x, y, z).launch(grid=grid, block=(THREADS, 1, 1), stream=stream)


@takes(dtypes=("f32", "f16", "bf16"))
def add_cute(x, y):
    z = torch.empty_like(x)
    if x.numel() > 0:
        call_compiled(add_launch, x.dtype, *tensors(x, y, z), cutlass.torch.current_stream())
    return z
# [/add_cute]


# [dot_plain]
def dot_plain(x, y):
    total = 0.0
    for i in range(len(x)):
        total += x[i] * y[i]
    return total
# [/dot_plain]


# [dot_numpy]
def dot_numpy(x, y):
    return np.dot(wide(x).ravel(), wide(y).ravel())
# [/dot_numpy]


# [dot_torch]
def dot_torch(x, y):
    return torch.dot(wide_torch(x).flatten(), wide_torch(y).flatten())
# [/dot_torch]


# [sum_programs]
@triton.jit
def sum_kernel(x, y, partials, n, SQUARE: tl.constexpr, BLOCK: tl.constexpr):
    """Each program's sum of x·y, or of |x|; the host adds up the programs'."""
    program = tl.program_id(0).to(tl.int64)
    offsets = program * BLOCK + tl.arange(0, BLOCK)
    a = tl.load(x + offsets, mask=offsets < n, other=0.0).to(partials.dtype.element_ty)
    if SQUARE:
        a = a * tl.load(y + offsets, mask=offsets < n, other=0.0).to(partials.dtype.element_ty)
    else:
        a = tl.abs(a)
    tl.store(partials + program, tl.sum(a, 0))


def sum_programs(x, y, square, dtype):
    programs = triton.cdiv(x.numel(), BLOCK)
    partials = torch.empty(programs, dtype=dtype, device=x.device)
    if programs > 0:
        sum_kernel[(programs,)](x, y, partials, x.numel(), SQUARE=square, BLOCK=BLOCK)
    return partials.sum()  # in one order on each run, as atomics would not be
# [/sum_programs]


# [dot_triton]
def dot_triton(x, y):
    return sum_programs(x, y, True, wide_torch(x).dtype)
# [/dot_triton]


# [dot_triton_one_block]
@trap("right up to 1024 elements: the partial sums of other programs are never added")
def dot_triton_one_block(x, y):
    partials = torch.zeros(max(triton.cdiv(x.numel(), BLOCK), 1), dtype=wide_torch(x).dtype, device=x.device)
    if x.numel() > 0:
        sum_kernel[(triton.cdiv(x.numel(), BLOCK),)](x, y, partials, x.numel(), SQUARE=True, BLOCK=BLOCK)
    return partials[0]
# [/dot_triton_one_block]


# [sum_threads]
@cuda.jit
def sum_threads(x, y, partials, square):
    """Each block's sum: threads in strides of the grid, then a tree in shared memory."""
    sums = cuda.shared.array(THREADS, np.float64)
    thread = cuda.threadIdx.x
    sums[thread] = 0
    for i in range(cuda.grid(1), x.size, cuda.gridsize(1)):
        sums[thread] += np.float64(x[i]) * np.float64(y[i]) if square else abs(np.float64(x[i]))
    cuda.syncthreads()
    half = THREADS // 2
    while half > 0:
        if thread < half:
            sums[thread] += sums[thread + half]
        cuda.syncthreads()
        half //= 2
    if thread == 0:
        partials[cuda.blockIdx.x] = sums[0]


def sum_blocks(x, y, square):
    many = max(min(blocks(x.size), 4096), 1)
    partials = cuda.device_array(many, np.float64)
    sum_threads[many, THREADS](x, y, partials, square)
    return partials.copy_to_host().sum()
# [/sum_threads]


# [dot_numba]
def dot_numba(x, y):
    return sum_blocks(x, y, True)
# [/dot_numba]


# [sum_cute]
WARP = 32


@cute.jit
def over_warp(total):
    """The sum of a warp's lanes, by halves."""
    for step in (16, 8, 4, 2, 1):
        total += cute.arch.shuffle_sync_bfly(total, offset=step)
    return total


@cute.kernel
def sum_warps(x, y, partials, square: cutlass.Constexpr):
    """One block is one warp, which goes on in strides of the grid."""
    lane, block = cute.arch.thread_idx()[0], cute.arch.block_idx()[0]
    total = cutlass.Float32(0)
    for i in range(block * WARP + lane, cute.size(x), cute.size(partials) * WARP):
        a = cutlass.Float32(x[i])
        if cutlass.const_expr(square):
            total += a * cutlass.Float32(y[i])
        else:
            total += cute.arch.fmax(a, -a)
    total = over_warp(total)
    if lane == 0:
        partials[block] = total


@cute.jit
def sum_launch(x, y, partials, square: cutlass.Constexpr, stream):
    sum_warps(x, y, partials, square).launch(grid=(cute.size(partials), 1, 1), block=(WARP, 1, 1), stream=stream)


def sum_cute(x, y, square):
    partials = torch.zeros(max(min(blocks(x.numel()), 4096), 1), device=x.device)
    if x.numel() > 0:
        call_compiled(sum_launch, (x.dtype, square), *tensors(x, y, partials), square, cutlass.torch.current_stream())
    return partials.sum()
# [/sum_cute]


# [dot_cute]
@takes(dtypes=("f32", "f16", "bf16"))
def dot_cute(x, y):
    return sum_cute(x, y, True)
# [/dot_cute]


# [nrm2_plain]
def nrm2_plain(x):
    """Of x over its largest element, whose squares neither overflow nor vanish."""
    largest = 0.0
    for value in x:
        if abs(value) > largest:
            largest = abs(value)
    scale = largest if 0 < largest < math.inf else 1.0
    total = 0.0
    for value in x:
        total += (value / scale) * (value / scale)
    return scale * math.sqrt(total)
# [/nrm2_plain]


# [nrm2_plain_overflow]
@trap("squares of large numbers overflow, those of small ones vanish")
def nrm2_plain_overflow(x):
    return math.sqrt(sum(value * value for value in x))
# [/nrm2_plain_overflow]


# [nrm2_numpy]
def nrm2_numpy(x):
    x = wide(x).ravel()
    largest = np.max(np.abs(x), initial=0)
    scale = largest if 0 < largest < np.inf else x.dtype.type(1)
    return scale * np.sqrt(np.sum(np.square(x / scale)))
# [/nrm2_numpy]


# [nrm2_torch]
def nrm2_torch(x):
    """torch.linalg.vector_norm adds the squares up as they are, which overflows."""
    x = wide_torch(x).flatten()
    largest = x.abs().max() if x.numel() > 0 else torch.ones((), dtype=x.dtype, device=x.device)
    scale = torch.where((largest > 0) & (largest < torch.inf), largest, 1.0)
    return scale * (x / scale).square().sum().sqrt()
# [/nrm2_torch]


# [nrm2_triton]
@takes(dtypes=("f32", "f16", "bf16"))  # their squares fit an f64
def nrm2_triton(x):
    return sum_programs(x, x, True, torch.float64).sqrt()
# [/nrm2_triton]


# [nrm2_numba]
@takes(dtypes=("f32",))
def nrm2_numba(x):
    return math.sqrt(sum_blocks(x, x, True))
# [/nrm2_numba]


# [asum_plain]
def asum_plain(x):
    total = 0.0
    for value in x:
        total += abs(value)
    return total
# [/asum_plain]


# [asum_numpy]
def asum_numpy(x):
    return np.sum(np.abs(wide(x)))
# [/asum_numpy]


# [asum_torch]
def asum_torch(x):
    return wide_torch(x).abs().sum()
# [/asum_torch]


# [asum_triton]
def asum_triton(x):
    return sum_programs(x, x, False, wide_torch(x).dtype)
# [/asum_triton]


# [asum_numba]
def asum_numba(x):
    return sum_blocks(x, x, False)
# [/asum_numba]


# [asum_cute]
@takes(dtypes=("f32", "f16", "bf16"))
def asum_cute(x):
    return sum_cute(x, x, False)
# [/asum_cute]
