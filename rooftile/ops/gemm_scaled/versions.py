"""A product of 8-bit codes with scales in four languages: rooftile/ops/languages.py says how these functions are found, run and
judged. What they return is rounded to y's dtype by the check."""

from languages import np, takes, tl, torch, trap, triton

CODES = ("f32", "f16", "bf16", "f8e4m3", "f8e5m2", "i8")


# [gemm_scaled_plain]
@takes(dtypes=CODES, only={"turned": 0})
def gemm_scaled_plain(a, b, scale_a, scale_b, bias=None, block=128, block_n=1):
    """A sum for each block of K, which its two scales multiply."""
    y, block, block_n = [], int(block), int(block_n)
    for p in range(len(a)):
        matrix = []
        for i, row in enumerate(a[p]):
            line = []
            for j in range(len(b[p][0]) if b[p] else len(bias or [])):
                total = bias[j] if bias else 0.0
                for t, begin in enumerate(range(0, len(row), block)):
                    products = (row[k] * b[p][k][j] for k in range(begin, min(begin + block, len(row))))
                    total += sum(products) * (scale_a[p][i][t] * scale_b[p][t][j // block_n])
                line.append(total)
            matrix.append(line)
        y.append(matrix)
    return y
# [/gemm_scaled_plain]


# [gemm_scaled_numpy]
def product_numpy(a, b, scale_a, scale_b, bias, block, block_n):
    k, n = b.shape[-2:]
    y = np.zeros((*a.shape[:-1], n))
    columns = np.repeat(scale_b, min(block_n, max(n, 1)), axis=-1)[..., :n]
    for t, begin in enumerate(range(0, k, block)):
        part = slice(begin, begin + block)
        sums = a[..., part].astype(np.float64) @ b[..., part, :].astype(np.float64)
        with np.errstate(all="ignore"):
            y += sums * (scale_a[..., t, None] * columns[..., t, None, :])
    return y if bias is None else y + bias


@takes(dtypes=("f32", "f16", "i8"), only={"turned": 0})
def gemm_scaled_numpy(a, b, scale_a, scale_b, bias=None, block=128, block_n=1):
    return product_numpy(a, b, scale_a, scale_b, bias, int(block), int(block_n))
# [/gemm_scaled_numpy]


# [gemm_scaled_numpy_one_scale]
@trap("the first block's scales are taken for all of K")
@takes(dtypes=("f32", "f16", "i8"), only={"turned": 0})
def gemm_scaled_numpy_one_scale(a, b, scale_a, scale_b, bias=None, block=128, block_n=1):
    first_a, first_b = np.broadcast_to(scale_a[..., :1], scale_a.shape), np.broadcast_to(scale_b[..., :1, :], scale_b.shape)
    return product_numpy(a, b, first_a, first_b, bias, int(block), int(block_n))
# [/gemm_scaled_numpy_one_scale]


# [gemm_scaled_numpy_tail]
@trap("a last block that is not whole is left out")
@takes(dtypes=("f32", "f16", "i8"), only={"turned": 0})
def gemm_scaled_numpy_tail(a, b, scale_a, scale_b, bias=None, block=128, block_n=1):
    whole = a.shape[-1] // int(block) * int(block)
    return product_numpy(a[..., :whole], b[..., :whole, :], scale_a, scale_b, bias, int(block), int(block_n))
# [/gemm_scaled_numpy_tail]


# [gemm_scaled_torch]
def dequantized(codes, scale, block, columns=1):
    """codes · scale in f64, of which both products are exact; the scale of `columns` neighbours is one."""
    each = scale.double().repeat_interleave(min(block, max(codes.shape[-1], 1)), -1)[..., :codes.shape[-1]]
    return codes.double() * each.repeat_interleave(min(columns, max(codes.shape[-2], 1)), -2)[..., :codes.shape[-2], :]


@takes(dtypes=CODES)
def gemm_scaled_torch(a, b, scale_a, scale_b, bias=None, block=128, block_n=1, turned=0):
    if turned:  # a weight {N, K}, whose scales are {⌈N/block_n⌉, ⌈K/block⌉}
        b, scale_b = b.mT, scale_b.mT
    y = dequantized(a, scale_a, int(block)) @ dequantized(b.mT, scale_b.mT, int(block), int(block_n)).mT
    return y if bias is None else y + bias
# [/gemm_scaled_torch]


# [gemm_scaled_torch_exchanged]
@trap("rows have b's scales, columns have a's")
@takes(dtypes=CODES, only={"turned": 0, "block_n": 1})
def gemm_scaled_torch_exchanged(a, b, scale_a, scale_b, bias=None, block=128, block_n=1):
    if a.shape[-2] == b.shape[-1]:
        scale_a, scale_b = scale_b.mT, scale_a.mT
    return gemm_scaled_torch(a, b, scale_a, scale_b, bias, block)
# [/gemm_scaled_torch_exchanged]


# [gemm_scaled_torch_bf16]
@trap("totals are kept in bf16 from block to block")
@takes(dtypes=CODES, only={"turned": 0})
def gemm_scaled_torch_bf16(a, b, scale_a, scale_b, bias=None, block=128, block_n=1):
    y, block = a.new_zeros((*a.shape[:-1], b.shape[-1]), dtype=torch.bfloat16), int(block)
    for t, begin in enumerate(range(0, a.shape[-1], block)):
        part = slice(begin, begin + block)
        y += gemm_scaled_torch(a[..., part], b[..., part, :], scale_a[..., t:t + 1], scale_b[..., t:t + 1, :], None, block, block_n)
    return y if bias is None else y + bias
# [/gemm_scaled_torch_bf16]


# [gemm_scaled_triton]
@triton.jit
def gemm_scaled_kernel(a, b, scale_a, scale_b, y, m, n, depth, blocks, blocks_n, block, block_n,
                       ROWS: tl.constexpr, COLUMNS: tl.constexpr, DEPTH: tl.constexpr):
    """One program, one tile of y. A block's sums stay apart until its scales multiply them."""
    matrix = tl.program_id(2).to(tl.int64)
    i = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    j = tl.program_id(1).to(tl.int64) * COLUMNS + tl.arange(0, COLUMNS)
    a += matrix * m * depth
    b += matrix * depth * n
    total = tl.zeros((ROWS, COLUMNS), tl.float32)
    for t in range(0, blocks):
        sums = tl.zeros((ROWS, COLUMNS), tl.float32)
        end = tl.minimum(depth, (t + 1) * block)
        for start in range(t * block, end, DEPTH):
            k = start + tl.arange(0, DEPTH)
            left = tl.load(a + i[:, None] * depth + k[None, :], mask=(i < m)[:, None] & (k < end)[None, :], other=0.0)
            right = tl.load(b + k[:, None] * n + j[None, :], mask=(k < end)[:, None] & (j < n)[None, :], other=0.0)
            sums = tl.dot(left.to(tl.float16), right.to(tl.float16), sums)
        of_rows = tl.load(scale_a + (matrix * m + i) * blocks + t, mask=i < m, other=0.0)
        of_columns = tl.load(scale_b + (matrix * blocks + t) * blocks_n + j // block_n, mask=j < n, other=0.0)
        total += sums * (of_rows[:, None] * of_columns[None, :])
    y += matrix * m * n + i[:, None] * n + j[None, :]
    tl.store(y, total, mask=(i < m)[:, None] & (j < n)[None, :])


@takes(dtypes=("f32", "f16", "f8e4m3", "f8e5m2"), only={"turned": 0})
def gemm_scaled_triton(a, b, scale_a, scale_b, block=128, block_n=1):
    matrices, m, depth = a.shape
    n, blocks, blocks_n = b.shape[2], scale_b.shape[1], scale_b.shape[2]
    y = torch.empty((matrices, m, n), dtype=torch.float32, device=a.device)
    if y.numel() > 0:
        grid = (triton.cdiv(m, 32), triton.cdiv(n, 64), matrices)
        gemm_scaled_kernel[grid](a, b, scale_a, scale_b, y, m, n, depth, blocks, blocks_n, int(block), int(block_n), ROWS=32,
                                 COLUMNS=64, DEPTH=32)
    return y
# [/gemm_scaled_triton]
