"""Running averages in four languages: rooftile/ops/languages.py says how these functions are found, run and judged."""

from languages import np, tl, torch, trap, triton


# [ema_plain]
def moved(average, decay, x):
    """decay·average + (1 - decay)·x from the nearer of the two: a number far larger would leave none of the result's digits."""
    return average + (1 - decay) * (x - average) if decay > 0.5 else x + decay * (average - x)


def ema_plain(average, parameter, decay=0.999):
    return average if decay == 1 else [moved(a, decay, p) for a, p in zip(average, parameter)]
# [/ema_plain]


# [ema_numpy]
def ema_numpy(average, parameter, decay=0.999):
    with np.errstate(all="ignore"):
        if decay == 1:
            return average
        return moved(average.astype(np.float64), decay, parameter.astype(np.float64)).astype(average.dtype)
# [/ema_numpy]


# [ema_torch]
def ema_torch(average, parameter, decay=0.999):
    return average if decay == 1 else moved(average.double(), decay, parameter.double()).to(average.dtype)
# [/ema_torch]


# [ema_traps]
@trap("1 - decay is a difference of f32 numbers: of 0.9999 it is off by 1e-4")
def ema_numpy_f32_decay(average, parameter, decay=0.999):
    with np.errstate(all="ignore"):
        share = float(np.float32(1) - np.float32(decay))
        a, p = average.astype(np.float64), parameter.astype(np.float64)
        return (a + share * (p - a)).astype(average.dtype)


@trap("decay is the parameter's share, not the average's")
def ema_numpy_swapped(average, parameter, decay=0.999):
    return ema_numpy(average, parameter, 1 - decay)
# [/ema_traps]


# [ema_triton]
@triton.jit
def ema_kernel(average, parameter, out, count, decay, share, SIZE: tl.constexpr):
    """1 - decay was computed on the host, in f64."""
    at = tl.program_id(0).to(tl.int64) * SIZE + tl.arange(0, SIZE)
    a, p = tl.load(average + at, mask=at < count).to(tl.float32), tl.load(parameter + at, mask=at < count).to(tl.float32)
    moved = tl.where(share < 0.5, a + share * (p - a), p + decay * (a - p))
    tl.store(out + at, tl.where(share == 0, a, moved).to(out.dtype.element_ty), mask=at < count)


def ema_triton(average, parameter, decay=0.999):
    out, SIZE = torch.empty_like(average), 1024
    if average.numel() > 0:
        ema_kernel[(triton.cdiv(average.numel(), SIZE),)](average, parameter, out, average.numel(), decay, 1 - decay, SIZE=SIZE)
    return out
# [/ema_triton]
