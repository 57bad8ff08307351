"""A matrix product in five languages: rooftile/ops/languages.py says how these functions are found, run and judged.

y = alpha·A·B + bias + beta·c. Activations are activation's; versions here have none.
"""

from languages import cuda, np, takes, tl, torch, trap, triton

SIDE = 8  # of a CUDA block's tile


# [gemm_plain]
@takes(only={"turned": 0, "out": 0})
def gemm_plain(a, b, c=None, bias=None, alpha=1.0, beta=0.0):
    """Each element of y: a row of A times a column of B."""
    y = []
    for p in range(len(a)):
        matrix = []
        for i, row in enumerate(a[p]):
            line = []
            for j in range(len(b[p][0])):
                total = 0.0
                for k, left in enumerate(row):
                    total += left * b[p][k][j]
                total = alpha * total + (bias[j] if bias else 0.0)
                line.append(total + beta * c[p][i][j] if beta != 0 else total)  # c is not read where beta is 0
            matrix.append(line)
        y.append(matrix)
    return y
# [/gemm_plain]


# [gemm_numpy]
@takes(dtypes=("f64", "f32", "f16"), only={"turned": 0, "out": 0})
def gemm_numpy(a, b, c=None, bias=None, alpha=1.0, beta=0.0):
    wide = np.longdouble if a.dtype == np.float64 else np.float64
    y = alpha * (a.astype(wide) @ b.astype(wide))
    y = y if bias is None else y + bias
    y = y if beta == 0 else y + beta * c.astype(wide)
    return y.astype(a.dtype)
# [/gemm_numpy]


# [gemm_torch]
@takes(dtypes=("f64", "f32", "f16", "bf16"), only={"turned": 0, "out": 0})
def gemm_torch(a, b, c=None, bias=None, alpha=1.0, beta=0.0):
    y = alpha * (a.double() @ b.double())
    y = y if bias is None else y + bias
    y = y if beta == 0 else y + beta * c.double()
    return y.to(a.dtype)
# [/gemm_torch]


# [gemm_torch_beta]
@trap("0 times a NaN is a NaN: where beta is 0, c must not be read")
@takes(dtypes=("f64", "f32", "f16", "bf16"), only={"turned": 0, "out": 0})
def gemm_torch_beta(a, b, c=None, alpha=1.0, beta=0.0):
    y = alpha * (a.double() @ b.double())
    return (y if c is None else y + beta * c.double()).to(a.dtype)
# [/gemm_torch_beta]


# [gemm_triton]
def tiles(rows, columns, depth, warps):
    return triton.Config({"ROWS": rows, "COLUMNS": columns, "DEPTH": depth}, num_warps=warps, num_stages=3)


@triton.autotune([tiles(64, 64, 32, 4), tiles(128, 64, 32, 4), tiles(128, 128, 32, 8)], key=["m", "n", "depth"])
@triton.jit
def gemm_kernel(a, b, y, m, n, depth, ROWS: tl.constexpr, COLUMNS: tl.constexpr, DEPTH: tl.constexpr):
    """One program, one tile of y; the autotuner times the tiles above and keeps the fastest for a shape."""
    matrix = tl.program_id(2).to(tl.int64)
    i = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    j = tl.program_id(1).to(tl.int64) * COLUMNS + tl.arange(0, COLUMNS)
    k = tl.arange(0, DEPTH)
    a += matrix * m * depth + i[:, None] * depth + k[None, :]
    b += matrix * depth * n + k[:, None].to(tl.int64) * n + j[None, :]
    total = tl.zeros((ROWS, COLUMNS), tl.float32)
    for start in range(0, depth, DEPTH):
        inside = start + k < depth
        left = tl.load(a, mask=(i < m)[:, None] & inside[None, :], other=0.0)
        right = tl.load(b, mask=inside[:, None] & (j < n)[None, :], other=0.0)
        total = tl.dot(left, right, total, input_precision="ieee")
        a += DEPTH
        b += DEPTH * n
    y += matrix * m * n + i[:, None] * n + j[None, :]
    tl.store(y, total.to(y.dtype.element_ty), mask=(i < m)[:, None] & (j < n)[None, :])


@takes(dtypes=("f32", "f16", "bf16"), only={"turned": 0, "out": 0})
def gemm_triton(a, b):
    matrices, m, depth = a.shape
    n = b.shape[2]
    y = torch.empty((matrices, m, n), dtype=a.dtype, device=a.device)
    if y.numel() > 0:
        grid = lambda its: (triton.cdiv(m, its["ROWS"]), triton.cdiv(n, its["COLUMNS"]), matrices)  # noqa: E731
        if a.is_cuda:
            gemm_kernel[grid](a, b, y, m, n, depth)
        else:  # the interpreter times nothing
            gemm_kernel.fn[grid](a, b, y, m, n, depth, ROWS=16, COLUMNS=16, DEPTH=16)
    return y
# [/gemm_triton]


# [gemm_numba]
@cuda.jit
def gemm_threads(a, b, y):
    """One thread, one element; a block brings a tile of A and one of B into shared memory, each element once."""
    left = cuda.shared.array((SIDE, SIDE), a.dtype)
    right = cuda.shared.array((SIDE, SIDE), a.dtype)
    matrix = cuda.blockIdx.z
    row, column = cuda.threadIdx.y, cuda.threadIdx.x
    i, j = cuda.blockIdx.y * SIDE + row, cuda.blockIdx.x * SIDE + column
    total = y.dtype.type(0)
    for start in range(0, a.shape[2], SIDE):
        left[row, column] = a[matrix, i, start + column] if i < a.shape[1] and start + column < a.shape[2] else 0
        right[row, column] = b[matrix, start + row, j] if start + row < b.shape[1] and j < b.shape[2] else 0
        cuda.syncthreads()
        for k in range(SIDE):
            total += left[row, k] * right[k, column]
        cuda.syncthreads()
    if i < y.shape[1] and j < y.shape[2]:
        y[matrix, i, j] = total


@takes(dtypes=("f64", "f32"), only={"turned": 0, "out": 0})
def gemm_numba(a, b):
    matrices, m, _ = a.shape
    n = b.shape[2]
    y = cuda.device_array((matrices, m, n), a.dtype)
    if y.size > 0:
        grid = ((n + SIDE - 1) // SIDE, (m + SIDE - 1) // SIDE, matrices)
        gemm_threads[grid, (SIDE, SIDE, 1)](a, b, y)
    return y
# [/gemm_numba]
