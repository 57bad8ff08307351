"""A transpose in five languages: rooftile/ops/languages.py says how these functions are found, run and judged."""

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
