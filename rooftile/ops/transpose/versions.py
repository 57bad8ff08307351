"""A transpose in five languages: rooftile/ops/languages.py says how these functions are found, run and judged."""

import math

from languages import cuda, tl, torch, trap, triton

SIDE = 32  # of a Triton program's tile
BLOCK = 8  # of a CUDA block's


# [transpose_plain]
def transpose_plain(x):
    """Matrix by matrix: row j of the result is column j."""
    y = []
    for matrix in x:
        columns = len(matrix[0]) if matrix else 0
        y.append([[row[j] for row in matrix] for j in range(columns)])
    return y
# [/transpose_plain]


# [transpose_numpy]
def transpose_numpy(x):
    """swapaxes only exchanges strides; copy moves the elements."""
    return x.swapaxes(-1, -2).copy()
# [/transpose_numpy]


# [transpose_torch]
def transpose_torch(x):
    return x.mT.contiguous()
# [/transpose_torch]


# [transpose_torch_reshape]
@trap("another shape is no transpose: the elements stay where they are")
def transpose_torch_reshape(x):
    return x.reshape(*x.shape[:-2], x.shape[-1], x.shape[-2])
# [/transpose_torch_reshape]


# [transpose_triton]
@triton.jit
def transpose_kernel(x, y, rows, columns, SIDE: tl.constexpr):
    """One program, one tile: loaded along x's rows, turned on chip, stored along y's."""
    matrix = tl.program_id(2).to(tl.int64) * rows * columns
    row = tl.program_id(1).to(tl.int64) * SIDE + tl.arange(0, SIDE)
    column = tl.program_id(0).to(tl.int64) * SIDE + tl.arange(0, SIDE)
    inside = (row < rows)[:, None] & (column < columns)[None, :]
    tile = tl.load(x + matrix + row[:, None] * columns + column[None, :], mask=inside)
    tl.store(y + matrix + column[:, None] * rows + row[None, :], tl.trans(tile), mask=tl.trans(inside))


def transpose_triton(x):
    matrices, rows, columns = x.shape
    y = torch.empty((matrices, columns, rows), dtype=x.dtype, device=x.device)
    if x.numel() > 0:
        grid = (triton.cdiv(columns, SIDE), triton.cdiv(rows, SIDE), matrices)
        transpose_kernel[grid](x, y, rows, columns, SIDE=SIDE)
    return y
# [/transpose_triton]


# [transpose_numba]
@cuda.jit
def transpose_threads(x, y):
    """One thread, one element: neighbours read neighbours, and write far apart."""
    column, row, matrix = cuda.grid(3)
    if row < x.shape[1] and column < x.shape[2]:
        y[matrix, column, row] = x[matrix, row, column]


def transpose_numba(x):
    matrices, rows, columns = x.shape
    y = cuda.device_array((matrices, columns, rows), x.dtype)
    if x.size > 0:
        grid = ((columns + BLOCK - 1) // BLOCK, (rows + BLOCK - 1) // BLOCK, matrices)
        transpose_threads[grid, (BLOCK, BLOCK, 1)](x, y)
    return y
# [/transpose_numba]


def order_of(rank, number):
    """Which of a rank's orders, sorted as words are: 0 leaves all in place, 1 exchanges the last two."""
    left, order = list(range(rank)), []
    for d in range(rank, 0, -1):
        at, number = divmod(int(number) % math.factorial(d), math.factorial(d - 1))
        order.append(left.pop(at))
    return order


# [permute_plain]
def permute_plain(x, order=1):
    """Index by index: what y has at some indices, x has at the same ones in its own order."""
    sizes, part = [], x
    while isinstance(part, list):
        sizes.append(len(part))
        part = part[0] if part else None
    dims = order_of(len(sizes), order)

    def at(*indices):
        if len(indices) < len(sizes):
            return [at(*indices, i) for i in range(sizes[dims[len(indices)]])]
        value = x
        for d in range(len(sizes)):
            value = value[indices[dims.index(d)]]
        return value

    return [] if 0 in sizes else at()
# [/permute_plain]


# [permute_numpy]
def permute_numpy(x, order=1):
    """transpose only puts sizes and strides in order; copy moves the elements."""
    return x.transpose(order_of(x.ndim, order)).copy()
# [/permute_numpy]


# [permute_torch]
def permute_torch(x, order=1):
    return x.permute(order_of(x.dim(), order)).contiguous()
# [/permute_torch]


# [permute_torch_reshape]
@trap("another shape is no other order: the elements stay where they are")
def permute_torch_reshape(x, order=1):
    return x.reshape([x.shape[d] for d in order_of(x.dim(), order)])
# [/permute_torch_reshape]


# [permute_triton]
@triton.jit
def permute_kernel(x, y, sizes, strides, n, RANK: tl.constexpr, BLOCK: tl.constexpr):
    """One program, 1024 neighbours of y: an element's indices are its place's remainders by y's sizes."""
    to = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    rest, source = to, to * 0
    for d in tl.static_range(RANK):
        size = tl.load(sizes + RANK - 1 - d)
        source += rest % size * tl.load(strides + RANK - 1 - d)
        rest = rest // size
    tl.store(y + to, tl.load(x + source, mask=to < n), mask=to < n)


def permute_triton(x, order=1):
    seen = x.permute(order_of(x.dim(), order))
    y = torch.empty(seen.shape, dtype=x.dtype, device=x.device)
    if x.numel() > 0:
        sizes, strides = (torch.tensor([*list, 1], device=x.device) for list in (seen.shape, seen.stride()))
        permute_kernel[(triton.cdiv(x.numel(), 1024),)](x, y, sizes, strides, x.numel(), RANK=x.dim(), BLOCK=1024)
    return y
# [/permute_triton]
