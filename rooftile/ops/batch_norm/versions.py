"""Batch norm in four languages: rooftile/ops/languages.py says how these functions are found, run and judged.

x is N x C x S. Training gives y, mean, rstd, and the new running statistics where there are old ones.
"""

import math

from languages import np, tl, torch, trap, triton


# [batch_norm_plain]
def batch_norm_plain(x, weight=None, bias=None, running_mean=None, running_var=None, eps=1e-5, momentum=0.1):
    """Channel by channel, in two passes: E[x²] - E[x]² would cancel where the mean is large."""
    y = [[list(plane) for plane in sample] for sample in x]
    channels = len(x[0]) if x else len(weight or bias or running_mean or running_var or [])
    means, rstds, new_means, new_vars = [], [], [], []
    for c in range(channels):
        elements = [value for sample in x for value in sample[c]]
        m = len(elements)
        mean = sum(elements) / m if m else math.nan
        squares = sum((value - mean) ** 2 for value in elements)
        root = math.sqrt(squares / m + eps) if m else math.nan
        rstd = 1 / root if root != 0 else math.inf
        for sample in y:
            for s, value in enumerate(sample[c]):
                sample[c][s] = (value - mean) * rstd * (weight[c] if weight else 1) + (bias[c] if bias else 0)
        means.append(mean)
        rstds.append(rstd)
        if running_mean:
            new_means.append((1 - momentum) * running_mean[c] + momentum * mean if m else running_mean[c])
        if running_var:  # unbiased: M - 1
            new_vars.append((1 - momentum) * running_var[c] + momentum * squares / (m - 1) if m else running_var[c])
    return y, means, rstds, new_means if running_mean else None, new_vars if running_var else None
# [/batch_norm_plain]


def over_channels(v, otherwise):
    return otherwise if v is None else v[:, None]


# [batch_norm_numpy]
def batch_norm_numpy(x, weight=None, bias=None, running_mean=None, running_var=None, eps=1e-5, momentum=0.1):
    m, values = x.shape[0] * x.shape[2], x.astype(np.float64)
    with np.errstate(all="ignore"):
        mean = values.sum((0, 2)) / m
        squares = np.square(values - mean[:, None]).sum((0, 2))
        rstd = 1 / np.sqrt(squares / m + eps)
        y = (values - mean[:, None]) * rstd[:, None] * over_channels(weight, 1) + over_channels(bias, 0)

        def updated(old, now):
            return old if old is None or m == 0 else ((1 - momentum) * old.astype(np.float64) + momentum * now)

        return y.astype(x.dtype), mean, rstd, updated(running_mean, mean), updated(running_var, squares / (m - 1))
# [/batch_norm_numpy]


# [batch_norm_numpy_biased]
@trap("running_var takes the variance that divides by M: the batch's own, not an estimate of the data's")
def batch_norm_numpy_biased(x, weight=None, bias=None, running_mean=None, running_var=None, eps=1e-5, momentum=0.1):
    y, mean, rstd, new_mean, new_var = batch_norm_numpy(x, weight, bias, running_mean, running_var, eps, momentum)
    if new_var is not None and x.size:
        new_var = (1 - momentum) * running_var + momentum * x.astype(np.float64).var((0, 2))
    return y, mean, rstd, new_mean, new_var
# [/batch_norm_numpy_biased]


# [batch_norm_numpy_one_pass]
@trap("E[x²] - E[x]² in f32: both are large where the mean is, and their difference has no digit left")
def batch_norm_numpy_one_pass(x, weight=None, bias=None, running_mean=None, running_var=None, eps=1e-5, momentum=0.1):
    _, mean, _, new_mean, new_var = batch_norm_numpy(x, weight, bias, running_mean, running_var, eps, momentum)
    values = x.astype(np.float32)
    with np.errstate(all="ignore"):
        variance = np.square(values).mean((0, 2)) - np.square(values.mean((0, 2)))
        rstd = 1 / np.sqrt(variance + np.float32(eps))
    y = (values - mean[:, None]) * rstd[:, None] * over_channels(weight, 1) + over_channels(bias, 0)
    return y.astype(x.dtype), mean, rstd, new_mean, new_var
# [/batch_norm_numpy_one_pass]


# [batch_norm_torch]
def batch_norm_torch(x, weight=None, bias=None, running_mean=None, running_var=None, eps=1e-5, momentum=0.1):
    m, values = x.shape[0] * x.shape[2], x.double()
    mean = values.sum((0, 2)) / m
    squares = (values - mean[:, None]).square().sum((0, 2))
    rstd = 1 / (squares / m + eps).sqrt()
    y = (values - mean[:, None]) * rstd[:, None] * over_channels(weight, 1) + over_channels(bias, 0)

    def updated(old, now):
        return old if old is None or m == 0 else ((1 - momentum) * old.double() + momentum * now).float()

    return y.to(x.dtype), mean, rstd, updated(running_mean, mean), updated(running_var, squares / (m - 1))
# [/batch_norm_torch]


# [batch_norm_inference_torch]
def batch_norm_inference_torch(x, running_mean, running_var, weight=None, bias=None, eps=1e-5):
    scale = (1 / (running_var.double() + eps).sqrt())[:, None] * over_channels(weight, 1)
    return ((x.double() - running_mean[:, None]) * scale + over_channels(bias, 0)).to(x.dtype)
# [/batch_norm_inference_torch]


# [batch_norm_backward_numpy]
def batch_norm_backward_numpy(x, dy, mean, rstd, weight=None):
    m = x.shape[0] * x.shape[2]
    normal, dy = (x.astype(np.float64) - mean[:, None]) * rstd[:, None], dy.astype(np.float64)
    dweight, dbias = (dy * normal).sum((0, 2)), dy.sum((0, 2))
    with np.errstate(all="ignore"):
        dx = (dy - (dbias / m)[:, None] - normal * (dweight / m)[:, None]) * rstd[:, None] * over_channels(weight, 1)
    return dx.astype(x.dtype), dweight, dbias
# [/batch_norm_backward_numpy]


# [batch_norm_triton]
@triton.jit
def batch_norm_kernel(x, weight, bias, y, mean, rstd, variance, C, S, M, eps, BLOCK: tl.constexpr):
    """One program, one channel, BLOCK of its M = N·S elements at a time, three times."""
    c, lane = tl.program_id(0), tl.arange(0, BLOCK)
    first = tl.load(x + c * S).to(tl.float32)  # sums about an element lose no digits far from 0
    sums = tl.zeros([BLOCK], tl.float32)
    for begin in range(0, M, BLOCK):
        i = begin + lane
        value = tl.load(x + (i // S * C + c) * S + i % S, mask=i < M, other=0.0).to(tl.float32)
        sums += tl.where(i < M, value - first, 0.0)
    middle = tl.sum(sums, 0) / M
    squares = tl.zeros([BLOCK], tl.float32)
    for begin in range(0, M, BLOCK):
        i = begin + lane
        value = tl.load(x + (i // S * C + c) * S + i % S, mask=i < M, other=0.0).to(tl.float32)
        off = tl.where(i < M, (value - first) - middle, 0.0)  # lanes past the end do not join the variance
        squares += off * off
    total = tl.sum(squares, 0)
    scale = 1 / tl.sqrt(total / M + eps)
    tl.store(mean + c, first + middle)
    tl.store(rstd + c, scale)
    tl.store(variance + c, total / (M - 1))
    for begin in range(0, M, BLOCK):
        i = begin + lane
        at = (i // S * C + c) * S + i % S
        value = ((tl.load(x + at, mask=i < M, other=0.0).to(tl.float32) - first) - middle) * scale
        if weight is not None:
            value = value * tl.load(weight + c).to(tl.float32)
        if bias is not None:
            value = value + tl.load(bias + c).to(tl.float32)
        tl.store(y + at, value.to(y.dtype.element_ty), mask=i < M)


def batch_norm_triton(x, weight=None, bias=None, running_mean=None, running_var=None, eps=1e-5, momentum=0.1):
    n, c, s = x.shape
    y = torch.empty_like(x)
    mean, rstd, variance = (torch.full((c,), float("nan"), device=x.device) for _ in range(3))
    if x.numel() > 0:
        batch_norm_kernel[(c,)](x, weight, bias, y, mean, rstd, variance, c, s, n * s, eps, BLOCK=1024)

    def updated(old, now):  # 0.1 as an f32 is off by 1.5e-8 of itself
        return old if old is None or x.numel() == 0 else ((1 - momentum) * old.double() + momentum * now.double()).float()

    return y, mean, rstd, updated(running_mean, mean), updated(running_var, variance)
# [/batch_norm_triton]
