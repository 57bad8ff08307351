"""Rows divided by their norm in five languages: rooftile/ops/languages.py says how these functions are found, run and
judged. y = x / max(norm, eps); returned: y, norm.
"""

import math

from languages import cuda, np, takes, tl, torch, trap, triton

THREADS = 32  # of a CUDA block, which has one row


# [l1_normalize_plain]
def l1_normalize_plain(x, eps=1e-12):
    y, norms = [], []
    for row in x:
        norm = 0.0
        for value in row:
            norm += abs(value)
        divisor = eps if norm < eps else norm  # of a NaN a NaN
        y.append([value / divisor if divisor != 0 else math.nan for value in row])
        norms.append(norm)
    return y, norms
# [/l1_normalize_plain]


# [l2_normalize_plain]
def l2_normalize_plain(x, eps=1e-12):
    y, norms = [], []
    for row in x:
        squares = 0.0
        for value in row:
            squares += value * value
        norm = math.sqrt(squares)
        divisor = eps if norm < eps else norm
        y.append([value / divisor if divisor != 0 else math.nan for value in row])
        norms.append(norm)
    return y, norms
# [/l2_normalize_plain]


# [l2_normalize_plain_added]
@trap("eps is added to the norm, not a bound below it")
def l2_normalize_plain_added(x, eps=1e-12):
    norms = [math.sqrt(sum(value * value for value in row)) for row in x]
    return [[v / (norm + eps) if norm + eps != 0 else math.nan for v in row] for row, norm in zip(x, norms)], norms
# [/l2_normalize_plain_added]


# [numpy]
def divided(x, norm, eps):
    divisor = np.where(norm < eps, eps, norm)[..., None]  # np.maximum would do, too: it hands NaN on
    return (x.astype(np.float64) / divisor).astype(x.dtype), norm


def l1_normalize_numpy(x, eps=1e-12):
    return divided(x, np.abs(x.astype(np.float64)).sum(axis=-1), eps)


def l2_normalize_numpy(x, eps=1e-12):
    return divided(x, np.sqrt(np.square(x.astype(np.float64)).sum(axis=-1)), eps)
# [/numpy]


# [torch]
def divided_torch(x, norm, eps):
    return (x.double() / norm.clamp_min(eps).unsqueeze(-1)).to(x.dtype), norm


def l1_normalize_torch(x, eps=1e-12):
    return divided_torch(x, x.double().abs().sum(-1), eps)


def l2_normalize_torch(x, eps=1e-12):
    return divided_torch(x, x.double().square().sum(-1).sqrt(), eps)
# [/torch]


# [triton]
@triton.jit
def normalize_kernel(x, y, norms, columns, eps, SQUARE: tl.constexpr, SIZE: tl.constexpr):
    """One program, one row, held in registers; in f64, which holds the squares of all f32."""
    row = tl.program_id(0).to(tl.int64)
    column = tl.arange(0, SIZE)
    mask, at = column < columns, row * columns + column
    values = tl.load(x + at, mask=mask, other=0.0).to(tl.float64)
    norm = tl.sqrt(tl.sum(values * values, 0)) if SQUARE else tl.sum(tl.abs(values), 0)
    divisor = tl.where(norm < eps, eps, norm)
    tl.store(y + at, (values / divisor).to(y.dtype.element_ty), mask=mask)
    tl.store(norms + row, norm.to(tl.float32))


def normalized(x, eps, square):
    rows, columns = x.shape
    y, norms = torch.empty_like(x), torch.zeros(rows, device=x.device)
    if x.numel() > 0:
        normalize_kernel[(rows,)](x, y, norms, columns, eps, square, SIZE=triton.next_power_of_2(columns))
    return y, norms


@takes(longest=65536)
def l1_normalize_triton(x, eps=1e-12):
    return normalized(x, eps, False)


@takes(longest=65536)
def l2_normalize_triton(x, eps=1e-12):
    return normalized(x, eps, True)
# [/triton]


# [numba]
@cuda.jit
def normalize_threads(x, y, norms, eps, square):
    """One block, one row; each thread adds up what all threads left in shared memory."""
    shared = cuda.shared.array(THREADS, np.float64)
    row, thread, columns = cuda.blockIdx.x, cuda.threadIdx.x, x.shape[1]
    mine, norm = 0.0, 0.0
    for i in range(thread, columns, THREADS):
        value = np.float64(x[row, i])
        mine += value * value if square else abs(value)
    shared[thread] = mine
    cuda.syncthreads()
    for other in range(THREADS):
        norm += shared[other]
    norm = math.sqrt(norm) if square else norm
    for i in range(thread, columns, THREADS):
        y[row, i] = x[row, i] / (eps if norm < eps else norm)
    if thread == 0:
        norms[row] = norm


def normalized_by_blocks(x, eps, square):
    y, norms = cuda.device_array(x.shape, x.dtype), cuda.device_array(x.shape[0], np.float32)
    if x.size == 0:
        return y, np.zeros(x.shape[0])
    normalize_threads[x.shape[0], THREADS](x, y, norms, np.float64(eps), square)
    return y, norms


def l1_normalize_numba(x, eps=1e-12):
    return normalized_by_blocks(x, eps, False)


def l2_normalize_numba(x, eps=1e-12):
    return normalized_by_blocks(x, eps, True)
# [/numba]


# [backward_plain]
def normalize_backward_plain(x, dy, norm, eps, direction):
    """dx = (dy - s·Σ dy·y) / n, n = max(norm, eps); s is y, or x's sign; where eps bounds the norm, s = 0."""
    dx = []
    for row, slopes, norm_of_it in zip(x, dy, norm):
        n, inner = (eps if norm_of_it < eps else norm_of_it), 0.0
        if n == 0:
            dx.append([math.nan if slope == 0 or math.isnan(slope) else math.inf * slope for slope in slopes])
            continue
        if not norm_of_it < eps:
            for value, slope in zip(row, slopes):
                inner += slope * (value / n)
        dx.append([(slope - direction(value, n) * inner) / n for value, slope in zip(row, slopes)])
    return dx


def l1_normalize_backward_plain(x, dy, norm, eps=1e-12):
    return normalize_backward_plain(x, dy, norm, eps, lambda v, n: 1.0 if v > 0 else -1.0 if v < 0 else 0.0)


def l2_normalize_backward_plain(x, dy, norm, eps=1e-12):
    return normalize_backward_plain(x, dy, norm, eps, lambda v, n: v / n)
# [/backward_plain]


# [backward_numpy]
def normalize_backward_numpy(x, dy, norm, eps, direction):
    values, slopes, norm = x.astype(np.float64), dy.astype(np.float64), norm.astype(np.float64)[..., None]
    n = np.where(norm < eps, eps, norm)
    inner = np.where(norm < eps, 0, (slopes * (values / n)).sum(axis=-1, keepdims=True))
    return ((slopes - direction(values, n) * inner) / n).astype(x.dtype)


def l1_normalize_backward_numpy(x, dy, norm, eps=1e-12):
    return normalize_backward_numpy(x, dy, norm, eps, lambda v, n: (v > 0) * 1.0 - (v < 0) * 1.0)


def l2_normalize_backward_numpy(x, dy, norm, eps=1e-12):
    return normalize_backward_numpy(x, dy, norm, eps, lambda v, n: v / n)
# [/backward_numpy]


# [backward_torch]
def normalize_backward_torch(x, dy, norm, eps, direction):
    values, slopes, norm = x.double(), dy.double(), norm.double().unsqueeze(-1)
    n = norm.clamp_min(eps)
    inner = torch.where(norm < eps, 0, (slopes * (values / n)).sum(-1, keepdim=True))
    return ((slopes - direction(values, n) * inner) / n).to(x.dtype)


def l1_normalize_backward_torch(x, dy, norm, eps=1e-12):
    return normalize_backward_torch(x, dy, norm, eps, lambda v, n: (v > 0).double() - (v < 0).double())


def l2_normalize_backward_torch(x, dy, norm, eps=1e-12):
    return normalize_backward_torch(x, dy, norm, eps, lambda v, n: v / n)
# [/backward_torch]
