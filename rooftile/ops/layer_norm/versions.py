"""Layer norm in six languages: rooftile/ops/languages.py says how these functions are found, run and judged.

y = (h - mean)·rstd·weight + bias, rstd = 1 / √(variance + eps), h = x + residual. Returned: y, h, mean, rstd.
"""

import math

from languages import ct, cuda, np, takes, tl, torch, trap, triton

THREADS = 32  # of a CUDA block, which has one row


# [layer_norm_plain]
def layer_norm_plain(x, weight=None, bias=None, eps=1e-5):
    y, means, rstds = [], [], []
    for row in x:
        n, total, squares = len(row), 0.0, 0.0
        for value in row:
            total += value
        mean = total / n if n > 0 else math.nan
        for value in row:  # a second pass: E[x²] - E[x]² would cancel where the mean is large
            squares += (value - mean) * (value - mean)
        variance = squares / n + eps if n > 0 else math.nan
        rstd = 1 / math.sqrt(variance) if variance != 0 else math.inf
        out = [(value - mean) * rstd for value in row]
        for i in range(n):
            out[i] = out[i] * (weight[i] if weight else 1.0) + (bias[i] if bias else 0.0)
        y.append(out)
        means.append(mean)
        rstds.append(rstd)
    return y, None, means, rstds
# [/layer_norm_plain]


# [layer_norm_numpy]
def layer_norm_numpy(x, residual=None, weight=None, bias=None, eps=1e-5):
    h = x if residual is None else x + residual  # rounded to x's dtype, as it is stored
    values = h.astype(np.float64)
    mean = values.sum(axis=-1, keepdims=True) / x.shape[-1]
    centred = values - mean
    rstd = 1 / np.sqrt(np.square(centred).sum(axis=-1, keepdims=True) / x.shape[-1] + eps)
    y = centred * rstd
    y = y if weight is None else y * weight
    y = y if bias is None else y + bias
    return y.astype(x.dtype), h, mean.squeeze(-1), rstd.squeeze(-1)
# [/layer_norm_numpy]


# [layer_norm_numpy_one_pass]
@trap("E[x²] - E[x]² in f32: both are large where the mean is, and their difference has no digit left")
def layer_norm_numpy_one_pass(x, weight=None, bias=None, eps=1e-5):
    values = x.astype(np.float32)
    mean = values.mean(axis=-1, keepdims=True)
    variance = np.square(values).mean(axis=-1, keepdims=True) - np.square(mean)
    rstd = 1 / np.sqrt(variance + np.float32(eps))
    y = (values - mean) * rstd * (1 if weight is None else weight) + (0 if bias is None else bias)
    return y.astype(x.dtype), None, mean.squeeze(-1), rstd.squeeze(-1)
# [/layer_norm_numpy_one_pass]


# [layer_norm_torch]
def layer_norm_torch(x, residual=None, weight=None, bias=None, eps=1e-5):
    h = x if residual is None else x + residual
    values = h.double()
    mean = values.sum(-1, keepdim=True) / x.shape[-1]
    centred = values - mean
    rstd = (centred.square().sum(-1, keepdim=True) / x.shape[-1] + eps).rsqrt()
    y = centred * rstd
    y = y if weight is None else y * weight
    y = y if bias is None else y + bias
    return y.to(x.dtype), h, mean.squeeze(-1), rstd.squeeze(-1)
# [/layer_norm_torch]


# [layer_norm_triton]
@triton.jit
def layer_norm_kernel(x, weight, bias, y, mean, rstd, columns, eps, SIZE: tl.constexpr):
    """One program, one row. It is shifted by its first element: what is far from 0 then loses no digits."""
    row = tl.program_id(0).to(tl.int64)
    column = tl.arange(0, SIZE)
    mask, at = column < columns, row * columns + column
    first = tl.load(x + row * columns).to(tl.float32)
    shifted = tl.where(mask, tl.load(x + at, mask=mask, other=0.0).to(tl.float32) - first, 0.0)
    middle = tl.sum(shifted, 0) / columns
    centred = tl.where(mask, shifted - middle, 0.0)  # lanes past the end do not join the variance
    scale = 1 / tl.sqrt(tl.sum(centred * centred, 0) / columns + eps)
    result = centred * scale
    if weight is not None:
        result = result * tl.load(weight + column, mask=mask, other=0.0).to(tl.float32)
    if bias is not None:
        result = result + tl.load(bias + column, mask=mask, other=0.0).to(tl.float32)
    tl.store(y + at, result.to(y.dtype.element_ty), mask=mask)
    tl.store(mean + row, first + middle)
    tl.store(rstd + row, scale)


@takes(longest=65536)
def layer_norm_triton(x, weight=None, bias=None, eps=1e-5):
    rows, columns = x.shape
    y = torch.empty_like(x)
    mean = torch.full((rows,), float("nan"), device=x.device)  # of rows without elements
    rstd = torch.full((rows,), float("nan"), device=x.device)
    if x.numel() > 0:
        size = triton.next_power_of_2(columns)
        layer_norm_kernel[(rows,)](x, weight, bias, y, mean, rstd, columns, eps, SIZE=size)
    return y, None, mean, rstd
# [/layer_norm_triton]


# [layer_norm_triton_padding]
@triton.jit
def rstd_padded(x, mean, rstd, columns, eps, SIZE: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    column = tl.arange(0, SIZE)
    values = tl.load(x + row * columns + column, mask=column < columns, other=0.0).to(tl.float32)
    centred = values - tl.load(mean + row)
    tl.store(rstd + row, 1 / tl.sqrt(tl.sum(centred * centred, 0) / columns + eps))


@trap("lanes past the row's end join the variance, each with the mean's square")
@takes(longest=65536)
def layer_norm_triton_padding(x, weight, bias, eps=1e-5):
    mean, rstd = x.float().mean(1), torch.empty(x.shape[0], device=x.device)
    if x.numel() > 0:
        rstd_padded[(x.shape[0],)](x, mean, rstd, x.shape[1], eps, SIZE=triton.next_power_of_2(x.shape[1]))
    y = (x.float() - mean[:, None]) * rstd[:, None] * weight + bias
    return y.to(x.dtype), None, mean, rstd
# [/layer_norm_triton_padding]


# [layer_norm_numba]
@cuda.jit
def layer_norm_threads(x, weight, bias, y, mean, rstd, eps):
    """One block, one row; each thread adds up what all threads left in shared memory."""
    shared = cuda.shared.array((2, THREADS), np.float64)
    row, thread, columns = cuda.blockIdx.x, cuda.threadIdx.x, x.shape[1]
    total, middle, squares, variance = 0.0, 0.0, 0.0, 0.0
    for i in range(thread, columns, THREADS):
        total += x[row, i]
    shared[0, thread] = total
    cuda.syncthreads()
    for other in range(THREADS):
        middle += shared[0, other] / columns
    for i in range(thread, columns, THREADS):
        squares += (x[row, i] - middle) * (x[row, i] - middle)
    shared[1, thread] = squares
    cuda.syncthreads()
    for other in range(THREADS):
        variance += shared[1, other] / columns
    scale = 1 / math.sqrt(variance + eps)
    for i in range(thread, columns, THREADS):
        y[row, i] = (x[row, i] - middle) * scale * weight[i] + bias[i]
    if thread == 0:
        mean[row], rstd[row] = middle, scale


def layer_norm_numba(x, weight, bias, eps=1e-5):
    rows = x.shape[0]
    y, mean, rstd = (cuda.device_array(shape, np.float32) for shape in (x.shape, rows, rows))
    if x.size == 0:
        return y, None, np.full(rows, np.nan), np.full(rows, np.nan)
    layer_norm_threads[rows, THREADS](x, weight, bias, y, mean, rstd, eps)
    return y, None, mean, rstd
# [/layer_norm_numba]


# [layer_norm_cutile]
@ct.kernel
def layer_norm_tiles(x, weight, bias, y, mean, rstd, eps, WEIGHT: ct.Constant[bool], BIAS: ct.Constant[bool],
                     SIZE: ct.Constant[int]):
    """One tile, one row, shifted by its first element as the Triton kernel has it."""
    row, columns = ct.bid(0), x.shape[1]
    inside = ct.arange(SIZE, dtype=ct.int32) < columns
    first = ct.load(x, (row, 0), (1, 1)).astype(ct.float32)
    shifted = ct.where(inside, ct.load(x, (row, 0), (1, SIZE)).astype(ct.float32) - first, 0.0)
    middle = ct.sum(shifted, axis=1, keepdims=True) / columns
    centred = ct.where(inside, shifted - middle, 0.0)
    scale = 1 / ct.sqrt(ct.sum(centred * centred, axis=1, keepdims=True) / columns + eps)
    result = centred * scale
    if WEIGHT:
        result = result * ct.load(weight, (0,), (SIZE,)).astype(ct.float32)
    if BIAS:
        result = result + ct.load(bias, (0,), (SIZE,)).astype(ct.float32)
    ct.store(y, (row, 0), result.astype(y.dtype))
    ct.store(mean, (row,), ct.reshape(first + middle, (1,)))
    ct.store(rstd, (row,), ct.reshape(scale, (1,)))


@takes(longest=16384)
def layer_norm_cutile(x, weight=None, bias=None, eps=1e-5):
    rows, columns = x.shape
    y = torch.empty_like(x)
    mean, rstd = torch.full((2, rows), float("nan"), device=x.device)  # of rows without elements
    if x.numel() > 0:
        vectors = x if weight is None else weight, x if bias is None else bias  # absent: x, which is not read
        given = weight is not None, bias is not None
        arguments = (x, *vectors, y, mean, rstd, eps, *given, 1 << (columns - 1).bit_length())
        ct.launch(torch.cuda.current_stream(), (rows,), layer_norm_tiles, arguments)
    return y, None, mean, rstd
# [/layer_norm_cutile]


# [layer_norm_backward_plain]
def layer_norm_backward_plain(x, dy, mean, rstd, weight=None):
    """With n = (x - mean)·rstd and g = dy·weight: dx = rstd·(g - Σ g / C - n·Σ g·n / C)."""
    columns = len(x[0]) if x else 0
    dx, dweight, dbias = [], [0.0] * columns, [0.0] * columns
    for row, slopes, middle, scale in zip(x, dy, mean, rstd):
        total, products = 0.0, 0.0
        normal = [(value - middle) * scale for value in row]
        g = [slopes[i] * (weight[i] if weight else 1.0) for i in range(columns)]
        for i in range(columns):
            total += g[i]
            products += g[i] * normal[i]
            dweight[i] += slopes[i] * normal[i]
            dbias[i] += slopes[i]
        dx.append([(g[i] - total / columns - normal[i] * products / columns) * scale for i in range(columns)])
    return dx, dweight if x else None, dbias if x else None
# [/layer_norm_backward_plain]


# [layer_norm_backward_numpy]
def layer_norm_backward_numpy(x, dy, mean, rstd, weight=None):
    columns = x.shape[-1]
    slopes, scale = dy.astype(np.float64), rstd.astype(np.float64)[..., None]
    normal = (x.astype(np.float64) - mean[..., None]) * scale
    g = slopes if weight is None else slopes * weight
    total = g.sum(axis=-1, keepdims=True) / columns
    products = (g * normal).sum(axis=-1, keepdims=True) / columns
    rows = tuple(range(x.ndim - 1))
    dx = (g - total - normal * products) * scale
    return dx.astype(x.dtype), (slopes * normal).sum(axis=rows), slopes.sum(axis=rows)
# [/layer_norm_backward_numpy]


# [layer_norm_backward_torch]
def layer_norm_backward_torch(x, dy, mean, rstd, weight=None):
    columns = x.shape[-1]
    slopes, scale = dy.double(), rstd.double().unsqueeze(-1)
    normal = (x.double() - mean.unsqueeze(-1)) * scale
    g = slopes if weight is None else slopes * weight
    total = g.sum(-1, keepdim=True) / columns
    products = (g * normal).sum(-1, keepdim=True) / columns
    dx = (g - total - normal * products) * scale
    rows = list(range(x.dim() - 1))
    return dx.to(x.dtype), (slopes * normal).sum(rows), slopes.sum(rows)
# [/layer_norm_backward_torch]
