"""Dynamic tanh in five languages: rooftile/ops/languages.py says how these functions are found, run and judged.

y = weight · tanh(alpha · x) + bias; alpha is an array of one element.
"""

import math

from languages import cuda, np, takes, tl, torch, trap, triton

THREADS = 32  # of a CUDA block


# [dyt_plain]
def dyt_plain(x, alpha, weight=None, bias=None):
    y = []
    for row in x:
        out = [math.tanh(alpha[0] * value) for value in row]
        if weight:
            out = [value * w for value, w in zip(out, weight)]
        if bias:
            out = [value + b for value, b in zip(out, bias)]
        y.append(out)
    return y
# [/dyt_plain]


# [dyt_numpy]
def dyt_numpy(x, alpha, weight=None, bias=None):
    y = np.tanh(alpha.astype(np.float64) * x.astype(np.float64))
    if weight is not None:
        y = y * weight.astype(np.float64)
    if bias is not None:
        y = y + bias.astype(np.float64)
    return y.astype(x.dtype)
# [/dyt_numpy]


# [dyt_numpy_two_exponentials]
@trap("both exponentials overflow where alpha · x is large: ∞/∞")
def dyt_numpy_two_exponentials(x, alpha, weight=None, bias=None):
    up, down = np.exp(alpha * x), np.exp(-alpha * x)
    y = (up - down) / (up + down)
    return ((y if weight is None else y * weight) + (0 if bias is None else bias)).astype(x.dtype)
# [/dyt_numpy_two_exponentials]


# [dyt_torch]
def dyt_torch(x, alpha, weight=None, bias=None):
    y = torch.tanh(alpha.double() * x.double())
    if weight is not None:
        y = y * weight.double()
    if bias is not None:
        y = y + bias.double()
    return y.to(x.dtype)
# [/dyt_torch]


# [dyt_triton]
@triton.jit
def tanh_and_slope(v):
    """In e = exp(-2|v|), which no v makes infinite: (1 - e)/(1 + e), with v's sign, and 4e/(1 + e)²."""
    size = tl.abs(v)
    e = tl.exp(-2 * size)
    square = v * v  # below a half 1 - e would cancel: tanh's series
    near = v * (1 - square * (0.33333333 - square * (0.13333333 - square * (0.053968254 - square * 0.021869488))))
    far = (1 - e) / (1 + e)
    return tl.where(size < 0.25, near, tl.where(v < 0, -far, far)), 4 * e / ((1 + e) * (1 + e))


@triton.jit
def dyt_kernel(x, alpha, weight, bias, y, columns, SIZE: tl.constexpr):
    """One program, one row."""
    column = tl.arange(0, SIZE)
    mask, at = column < columns, tl.program_id(0).to(tl.int64) * columns + column
    values = tl.load(x + at, mask=mask, other=0.0).to(tl.float32)
    result, _ = tanh_and_slope(tl.load(alpha).to(tl.float32) * values)
    if weight is not None:
        result = result * tl.load(weight + column, mask=mask, other=0.0).to(tl.float32)
    if bias is not None:
        result = result + tl.load(bias + column, mask=mask, other=0.0).to(tl.float32)
    tl.store(y + at, result.to(y.dtype.element_ty), mask=mask)


@takes(longest=65536)
def dyt_triton(x, alpha, weight=None, bias=None):
    rows, columns = x.shape
    y = torch.empty_like(x)
    if x.numel() > 0:
        dyt_kernel[(rows,)](x, alpha, weight, bias, y, columns, SIZE=triton.next_power_of_2(columns))
    return y
# [/dyt_triton]


# [dyt_numba]
@cuda.jit
def dyt_threads(x, alpha, weight, bias, y):
    """One thread, one element."""
    at = cuda.grid(1)
    if at < x.size:
        row, column = at // x.shape[1], at % x.shape[1]
        v = np.float64(alpha[0]) * np.float64(x[row, column])
        y[row, column] = math.tanh(v) * weight[column] + bias[column]


def dyt_numba(x, alpha, weight, bias):
    y = cuda.device_array(x.shape, x.dtype)
    if x.size > 0:
        dyt_threads[(x.size + THREADS - 1) // THREADS, THREADS](x, alpha, weight, bias, y)
    return y
# [/dyt_numba]


# [dyt_backward_plain]
def dyt_backward_plain(x, dy, alpha, weight=None):
    """With v = alpha·x, e = exp(-2|v|), tanh'(v) = 4e/(1 + e)² and g = dy·weight·tanh'(v): dx = g·alpha, dalpha = Σ g·x over
    all elements, dweight = Σ dy·tanh(v) and dbias = Σ dy over the rows."""
    columns = len(x[0]) if x else 0
    dx, dalpha, dweight, dbias = [], 0.0, [0.0] * columns, [0.0] * columns
    for row, slopes in zip(x, dy):
        out = []
        for i, (value, slope) in enumerate(zip(row, slopes)):
            v = alpha[0] * value
            e = math.exp(-2 * abs(v))
            g = slope * (weight[i] if weight else 1.0) * 4 * e / (1 + e) ** 2
            out.append(g * alpha[0])
            dalpha += g * value
            dweight[i] += slope * math.tanh(v)
            dbias[i] += slope
        dx.append(out)
    return dx, [dalpha], dweight if x else None, dbias if x else None
# [/dyt_backward_plain]


# [dyt_backward_numpy]
def dyt_backward_numpy(x, dy, alpha, weight=None):
    values, slopes, a = x.astype(np.float64), dy.astype(np.float64), alpha.astype(np.float64)
    rows, v = tuple(range(x.ndim - 1)), a * values
    e = np.exp(-2 * np.abs(v))
    g = (slopes if weight is None else slopes * weight.astype(np.float64)) * 4 * e / (1 + e) ** 2
    return (g * a).astype(x.dtype), (g * values).sum().reshape(1), (slopes * np.tanh(v)).sum(axis=rows), slopes.sum(axis=rows)
# [/dyt_backward_numpy]


# [dyt_backward_numpy_one_minus_square]
@trap("1 - tanh² is 0 where tanh rounds to 1, and has few digits before")
def dyt_backward_numpy_one_minus_square(x, dy, alpha, weight=None):
    rows, y = tuple(range(x.ndim - 1)), np.tanh(alpha * x)
    g = (dy if weight is None else dy * weight) * (1 - y * y)
    return (g * alpha).astype(x.dtype), (g * x).sum().reshape(1), (dy * y).sum(axis=rows), dy.sum(axis=rows)
# [/dyt_backward_numpy_one_minus_square]


# [dyt_backward_torch]
def dyt_backward_torch(x, dy, alpha, weight=None):
    values, slopes, a = x.double(), dy.double(), alpha.double()
    v = a * values
    e = torch.exp(-2 * v.abs())
    g = (slopes if weight is None else slopes * weight.double()) * 4 * e / (1 + e) ** 2
    dweight, dbias = ((t.reshape(-1, x.shape[-1]) if t.numel() else t.new_zeros(1, x.shape[-1])).sum(0)
                      for t in (slopes * torch.tanh(v), slopes))
    return (g * a).to(x.dtype), (g * values).sum().reshape(1), dweight, dbias
# [/dyt_backward_torch]


# [dyt_backward_triton]
@triton.jit
def dyt_backward_kernel(x, dy, alpha, weight, dx, sums, alphas, rows, columns, SIZE: tl.constexpr):
    """A program takes every 8th row, say, and keeps its part of all sums in registers all the way."""
    program, programs = tl.program_id(0).to(tl.int64), tl.num_programs(0)
    column = tl.arange(0, SIZE)
    mask, a = column < columns, tl.load(alpha).to(tl.float32)
    w = tl.full((SIZE,), 1.0, tl.float32)
    if weight is not None:
        w = tl.load(weight + column, mask=mask, other=0.0).to(tl.float32)
    dweight, dbias, dalpha = (tl.zeros((SIZE,), tl.float32), tl.zeros((SIZE,), tl.float32), tl.zeros((SIZE,), tl.float32))
    for row in range(program, rows, programs):
        at = row * columns + column
        value = tl.load(x + at, mask=mask, other=0.0).to(tl.float32)
        slope = tl.load(dy + at, mask=mask, other=0.0).to(tl.float32)
        y, its = tanh_and_slope(a * value)
        g = slope * w * its
        tl.store(dx + at, (g * a).to(dx.dtype.element_ty), mask=mask)
        dalpha += tl.where(mask, g * value, 0.0)  # 0 · ∞ in empty lanes, where alpha is infinite
        dweight += slope * y
        dbias += slope
    tl.store(sums + program * columns + column, dweight, mask=mask)
    tl.store(sums + (programs + program) * columns + column, dbias, mask=mask)
    tl.store(alphas + program, tl.sum(dalpha, 0))


@takes(longest=65536)
def dyt_backward_triton(x, dy, alpha, weight=None):
    rows, columns = x.shape
    dx, programs = torch.empty_like(x), min(rows, 8 if x.device.type == "cpu" else 264)
    sums = torch.zeros((2, programs, columns), dtype=torch.float32, device=x.device)
    alphas = torch.zeros((programs,), dtype=torch.float32, device=x.device)
    if x.numel() > 0:
        size = triton.next_power_of_2(columns)
        dyt_backward_kernel[(programs,)](x, dy, alpha, weight, dx, sums, alphas, rows, columns, SIZE=size)
    return dx, alphas.sum(0, keepdim=True), *sums.sum(1)  # in one order on each run, as atomics would not be
# [/dyt_backward_triton]
