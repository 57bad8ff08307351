"""Group norm in four languages: rooftile/ops/languages.py says how these functions are found, run and judged."""

import math

from languages import np, tl, torch, trap, triton


# [group_norm_plain]
def group_norm_plain(x, weight=None, bias=None, groups=1, eps=1e-5):
    groups = int(groups)
    y = [[list(plane) for plane in sample] for sample in x]
    means, rstds = [], []
    for sample in y:
        channels = len(sample) // groups
        means.append([])
        rstds.append([])
        for g in range(groups):
            planes = range(g * channels, (g + 1) * channels)
            elements = [value for c in planes for value in sample[c]]
            m = len(elements)
            mean = sum(elements) / m if m else math.nan
            root = math.sqrt(sum((value - mean) ** 2 for value in elements) / m + eps) if m else math.nan
            rstd = 1 / root if root != 0 else math.inf
            for c in planes:
                w, b = weight[c] if weight else 1, bias[c] if bias else 0
                sample[c] = [(value - mean) * rstd * w + b for value in sample[c]]
            means[-1].append(mean)
            rstds[-1].append(rstd)
    return y, means, rstds
# [/group_norm_plain]


# [group_norm_numpy]
def group_norm_numpy(x, weight=None, bias=None, groups=1, eps=1e-5):
    groups = int(groups)
    rows = x.astype(np.float64).reshape(x.shape[0], groups, x.shape[1] // groups * x.shape[2])
    with np.errstate(all="ignore"):
        mean = rows.sum(-1) / rows.shape[-1] if rows.shape[-1] else np.full(rows.shape[:2], np.nan)
        off = rows - mean[..., None]
        rstd = 1 / np.sqrt(np.square(off).sum(-1) / np.float64(rows.shape[-1]) + eps)
        y = (off * rstd[..., None]).reshape(x.shape)
    y = y if weight is None else y * weight[:, None]
    y = y if bias is None else y + bias[:, None]
    return y.astype(x.dtype), mean, rstd
# [/group_norm_numpy]


# [group_norm_numpy_interleaved]
@trap("channel c belongs to group c % groups, not to c // (C / groups)")
def group_norm_numpy_interleaved(x, weight=None, bias=None, groups=1, eps=1e-5):
    order = np.arange(x.shape[1]).reshape(-1, int(groups)).T.ravel()
    back = np.argsort(order)
    y, mean, rstd = group_norm_numpy(x[:, order], None, None, groups, eps)
    y = y[:, back] * (1 if weight is None else weight[:, None]) + (0 if bias is None else bias[:, None])
    return y.astype(x.dtype), mean, rstd
# [/group_norm_numpy_interleaved]


# [group_norm_torch]
def group_norm_torch(x, weight=None, bias=None, groups=1, eps=1e-5):
    rows = x.double().reshape(x.shape[0], int(groups), x.shape[1] // int(groups) * x.shape[2])
    mean = rows.sum(-1) / rows.shape[-1] if rows.shape[-1] else rows.new_full(rows.shape[:2], math.nan)
    off = rows - mean[..., None]
    squares = off.square().sum(-1)
    rstd = 1 / ((squares / rows.shape[-1] if rows.shape[-1] else squares * math.nan) + eps).sqrt()
    y = (off * rstd[..., None]).reshape(x.shape)
    y = y if weight is None else y * weight[:, None]
    y = y if bias is None else y + bias[:, None]
    return y.to(x.dtype), mean, rstd
# [/group_norm_torch]


# [group_norm_triton]
@triton.jit
def group_norm_kernel(x, weight, bias, y, means, rstds, channels, size, groups, eps, HAS_WEIGHT: tl.constexpr,
                      HAS_BIAS: tl.constexpr, CHUNK: tl.constexpr):
    """One program, one group of a sample: a mean, then squares about it, then y: three passes."""
    group, n = tl.program_id(0).to(tl.int64), channels * size
    x, y, first = x + group * n, y + group * n, group % groups * channels
    total = tl.zeros((CHUNK,), tl.float64)
    for begin in range(0, n, CHUNK):
        k = begin + tl.arange(0, CHUNK)
        total += tl.load(x + k, mask=k < n, other=0.0).to(tl.float64)
    mean = tl.sum(total, 0) / n
    total = tl.zeros((CHUNK,), tl.float64)
    for begin in range(0, n, CHUNK):
        k = begin + tl.arange(0, CHUNK)
        off = tl.where(k < n, tl.load(x + k, mask=k < n, other=0.0).to(tl.float64) - mean, 0.0)
        total += off * off
    rstd = 1 / tl.sqrt(tl.sum(total, 0) / n + eps)
    tl.store(means + group, mean.to(tl.float32))
    tl.store(rstds + group, rstd.to(tl.float32))
    for begin in range(0, n, CHUNK):
        k = begin + tl.arange(0, CHUNK)
        out = (tl.load(x + k, mask=k < n, other=0.0).to(tl.float64) - mean) * rstd
        channel = first + k // size
        if HAS_WEIGHT:
            out *= tl.load(weight + channel, mask=k < n, other=0.0).to(tl.float64)
        if HAS_BIAS:
            out += tl.load(bias + channel, mask=k < n, other=0.0).to(tl.float64)
        tl.store(y + k, out.to(y.dtype.element_ty), mask=k < n)


def group_norm_triton(x, weight=None, bias=None, groups=1, eps=1e-5):
    samples, channels, size = x.shape
    groups = int(groups)
    y, n = torch.empty_like(x), channels // groups * size
    means, rstds = (x.new_full((samples, groups), math.nan, dtype=torch.float32) for _ in range(2))
    if means.numel() > 0 and n > 0:
        group_norm_kernel[(samples * groups,)](
            x, x if weight is None else weight, x if bias is None else bias, y, means, rstds, channels // groups, size, groups, eps,
            HAS_WEIGHT=weight is not None, HAS_BIAS=bias is not None, CHUNK=min(1024, triton.next_power_of_2(n)))
    return y, means, rstds
# [/group_norm_triton]
