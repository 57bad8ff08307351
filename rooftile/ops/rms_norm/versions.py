"""RMS norm in five languages: rooftile/ops/languages.py says how these functions are found, run and judged.

y = h·rstd·weight, rstd = 1 / √(Σ h² / C + eps), h = x + residual; weight + 1 with unit_offset. Returned: y, h, rstd.
"""

import math

from languages import cuda, np, takes, tl, torch, trap, triton

THREADS = 32  # of a CUDA block, which has one row


# [rms_norm_plain]
def rms_norm_plain(x, weight=None, eps=1e-6, unit_offset=False):
    y, rstds = [], []
    for row in x:
        squares = 0.0
        for value in row:
            squares += value * value
        mean = squares / len(row) + eps if row else math.nan
        rstd = 1 / math.sqrt(mean) if mean != 0 else math.inf
        out = [value * rstd for value in row]
        if weight:
            out = [value * (w + 1 if unit_offset else w) for value, w in zip(out, weight)]
        y.append(out)
        rstds.append(rstd)
    return y, None, rstds
# [/rms_norm_plain]


# [rms_norm_numpy]
def rms_norm_numpy(x, residual=None, weight=None, eps=1e-6, unit_offset=False):
    h = x if residual is None else x + residual  # rounded to x's dtype, as it is stored
    values = h.astype(np.float64)
    rstd = 1 / np.sqrt(np.square(values).sum(axis=-1, keepdims=True) / x.shape[-1] + eps)
    y = values * rstd
    if weight is not None:
        y = y * (weight.astype(np.float64) + (1 if unit_offset else 0))
    return y.astype(x.dtype), h, rstd.squeeze(-1)
# [/rms_norm_numpy]


# [rms_norm_numpy_eps_outside]
@trap("eps is added behind the root")
def rms_norm_numpy_eps_outside(x, weight=None, eps=1e-6):
    values = x.astype(np.float64)
    rstd = 1 / (np.sqrt(np.square(values).sum(axis=-1, keepdims=True) / x.shape[-1]) + eps)
    return (values * rstd * (1 if weight is None else weight)).astype(x.dtype), None, rstd.squeeze(-1)
# [/rms_norm_numpy_eps_outside]


# [rms_norm_torch]
def rms_norm_torch(x, residual=None, weight=None, eps=1e-6, unit_offset=False):
    h = x if residual is None else x + residual
    values = h.double()
    rstd = (values.square().sum(-1, keepdim=True) / x.shape[-1] + eps).rsqrt()
    y = values * rstd
    if weight is not None:
        y = y * (weight.double() + (1 if unit_offset else 0))
    return y.to(x.dtype), h, rstd.squeeze(-1)
# [/rms_norm_torch]


# [rms_norm_triton]
@triton.jit
def rms_norm_kernel(x, weight, y, rstd, columns, eps, offset, SIZE: tl.constexpr):
    """One program, one row, held in registers."""
    row = tl.program_id(0).to(tl.int64)
    column = tl.arange(0, SIZE)
    mask, at = column < columns, row * columns + column
    values = tl.load(x + at, mask=mask, other=0.0).to(tl.float32)
    scale = 1 / tl.sqrt(tl.sum(values * values, 0) / columns + eps)
    result = values * scale
    if weight is not None:
        result = result * (tl.load(weight + column, mask=mask, other=0.0).to(tl.float32) + offset)
    tl.store(y + at, result.to(y.dtype.element_ty), mask=mask)
    tl.store(rstd + row, scale)


@takes(longest=65536)
def rms_norm_triton(x, weight=None, eps=1e-6, unit_offset=False):
    rows, columns = x.shape
    y = torch.empty_like(x)
    rstd = torch.full((rows,), float("nan"), device=x.device)  # of rows without elements
    if x.numel() > 0:
        size = triton.next_power_of_2(columns)
        rms_norm_kernel[(rows,)](x, weight, y, rstd, columns, eps, 1.0 if unit_offset else 0.0, SIZE=size)
    return y, None, rstd
# [/rms_norm_triton]


# [rms_norm_numba]
@cuda.jit
def rms_norm_threads(x, weight, y, rstd, eps, offset):
    """One block, one row; each thread adds up what all threads left in shared memory."""
    shared = cuda.shared.array(THREADS, np.float64)
    row, thread, columns = cuda.blockIdx.x, cuda.threadIdx.x, x.shape[1]
    squares, total = 0.0, 0.0
    for i in range(thread, columns, THREADS):
        squares += np.float64(x[row, i]) * np.float64(x[row, i])
    shared[thread] = squares
    cuda.syncthreads()
    for other in range(THREADS):
        total += shared[other]
    scale = 1 / math.sqrt(total / columns + eps)
    for i in range(thread, columns, THREADS):
        y[row, i] = x[row, i] * scale * (weight[i] + offset)
    if thread == 0:
        rstd[row] = scale


def rms_norm_numba(x, weight, eps=1e-6, unit_offset=False):
    y, rstd = cuda.device_array(x.shape, x.dtype), cuda.device_array(x.shape[0], np.float32)
    if x.size == 0:
        return y, None, np.full(x.shape[0], np.nan)
    rms_norm_threads[x.shape[0], THREADS](x, weight, y, rstd, eps, 1.0 if unit_offset else 0.0)
    return y, None, rstd
# [/rms_norm_numba]


# [rms_norm_backward_plain]
def rms_norm_backward_plain(x, dy, rstd, weight=None, unit_offset=False):
    """With n = x·rstd and g = dy·weight: dx = rstd·(g - n·Σ g·n / C), dweight = Σ dy·n over the rows."""
    columns = len(x[0]) if x else 0
    dx, dweight = [], [0.0] * columns
    w = [v + 1 if unit_offset else v for v in weight] if weight else [1.0] * columns
    for row, slopes, scale in zip(x, dy, rstd):
        products = 0.0
        normal = [value * scale for value in row]
        g = [slopes[i] * w[i] for i in range(columns)]
        for i in range(columns):
            products += g[i] * normal[i]
            dweight[i] += slopes[i] * normal[i]
        dx.append([(g[i] - normal[i] * products / columns) * scale for i in range(columns)])
    return dx, dweight if x else None
# [/rms_norm_backward_plain]


# [rms_norm_backward_numpy]
def rms_norm_backward_numpy(x, dy, rstd, weight=None, unit_offset=False):
    slopes, scale = dy.astype(np.float64), rstd.astype(np.float64)[..., None]
    normal = x.astype(np.float64) * scale
    g = slopes if weight is None else slopes * (weight.astype(np.float64) + (1 if unit_offset else 0))
    products = (g * normal).sum(axis=-1, keepdims=True) / x.shape[-1]
    dx = (g - normal * products) * scale
    return dx.astype(x.dtype), (slopes * normal).sum(axis=tuple(range(x.ndim - 1)))
# [/rms_norm_backward_numpy]


# [rms_norm_backward_torch]
def rms_norm_backward_torch(x, dy, rstd, weight=None, unit_offset=False):
    slopes, scale = dy.double(), rstd.double().unsqueeze(-1)
    normal = x.double() * scale
    g = slopes if weight is None else slopes * (weight.double() + (1 if unit_offset else 0))
    products = (g * normal).sum(-1, keepdim=True) / x.shape[-1]
    dx = (g - normal * products) * scale
    return dx.to(x.dtype), (slopes * normal).sum(list(range(x.dim() - 1)))
# [/rms_norm_backward_torch]


# [rms_norm_backward_triton]
@triton.jit
def rms_norm_backward_kernel(x, dy, rstd, weight, dx, partials, rows, columns, offset, SIZE: tl.constexpr):
    """A program takes every 8th row, say, and keeps its part of dweight in registers all the way."""
    program, programs = tl.program_id(0).to(tl.int64), tl.num_programs(0)
    column = tl.arange(0, SIZE)
    mask = column < columns
    w, sums = tl.full((SIZE,), 1.0, tl.float32), tl.zeros((SIZE,), tl.float32)
    if weight is not None:
        w = tl.load(weight + column, mask=mask, other=0.0).to(tl.float32) + offset
    for row in range(program, rows, programs):
        at = row * columns + column
        scale = tl.load(rstd + row)
        slope = tl.load(dy + at, mask=mask, other=0.0).to(tl.float32)
        normal = tl.load(x + at, mask=mask, other=0.0).to(tl.float32) * scale
        products = tl.sum(slope * w * normal, 0) / columns
        tl.store(dx + at, ((slope * w - normal * products) * scale).to(dx.dtype.element_ty), mask=mask)
        sums += slope * normal
    tl.store(partials + program * columns + column, sums, mask=mask)


@takes(longest=65536)
def rms_norm_backward_triton(x, dy, rstd, weight=None, unit_offset=False):
    rows, columns = x.shape
    dx, programs = torch.empty_like(x), min(rows, 8 if x.device.type == "cpu" else 264)
    partials = torch.empty((programs, columns), dtype=torch.float32, device=x.device)
    if x.numel() > 0:
        size, offset = triton.next_power_of_2(columns), 1.0 if unit_offset else 0.0
        rms_norm_backward_kernel[(programs,)](x, dy, rstd, weight, dx, partials, rows, columns, offset, SIZE=size)
    return dx, partials.sum(0)  # in one order on each run, as atomics would not be
# [/rms_norm_backward_triton]
