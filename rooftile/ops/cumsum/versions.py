"""Running sums in four languages: rooftile/ops/languages.py says how these functions are found, run and judged."""

import math

from languages import np, takes, tl, torch, trap, triton


# [cumsum_plain]
def cumsum_plain(x, exclusive=False, reverse=False):
    y = []
    for row in x:
        sums, total = [], 0.0
        for value in reversed(row) if reverse else row:
            before, total = total, total + value
            sums.append(before if exclusive else total)
        y.append(sums[::-1] if reverse else sums)
    return y
# [/cumsum_plain]


# [cumsum_numpy]
def cumsum_numpy(x, exclusive=False, reverse=False):
    wide = x.astype(np.float64)[..., ::-1 if reverse else 1]
    with np.errstate(invalid="ignore"):
        y = np.cumsum(wide, -1)
    if exclusive:
        y = np.concatenate([np.zeros_like(y[..., :1]), y[..., :-1]], -1)
    return y[..., ::-1 if reverse else 1].astype(x.dtype)
# [/cumsum_numpy]


# [cumsum_numpy_difference]
@trap("an infinity less itself is NaN: the exclusive sum is no difference")
def cumsum_numpy_difference(x, exclusive=False, reverse=False):
    y = cumsum_numpy(x.astype(np.float64), False, reverse)
    with np.errstate(invalid="ignore"):
        return (y - x if exclusive else y).astype(x.dtype)
# [/cumsum_numpy_difference]


# [cumsum_torch]
def cumsum_torch(x, exclusive=False, reverse=False):
    wide = x.double().flip(-1) if reverse else x.double()
    y = wide.cumsum(-1)
    if exclusive:
        y = torch.nn.functional.pad(y, (1, 0))[..., :-1]
    return (y.flip(-1) if reverse else y).to(x.dtype)
# [/cumsum_torch]


# [cumsum_backward_torch]
def cumsum_backward_torch(dy, exclusive=False, reverse=False):
    """x_i is in y_j for all j from i on: sums the other way."""
    return cumsum_torch(dy, exclusive, not reverse)
# [/cumsum_backward_torch]


# [cumsum_triton]
@triton.jit
def cumsum_kernel(x, y, columns, exclusive, reverse, SIZE: tl.constexpr):
    """One program, one row, SIZE columns at a time."""
    row = tl.program_id(0).to(tl.int64) * columns
    base = 0.0
    for first in range(0, columns, SIZE):
        place = first + tl.arange(0, SIZE)
        at = tl.where(reverse, columns - 1 - place, place)
        values = tl.load(x + row + at, mask=place < columns, other=0.0).to(tl.float32)
        sums = base + tl.cumsum(values, 0)
        to = tl.where(exclusive, place + 1, place)  # each sum is of what comes before the next
        at = tl.where(reverse, columns - 1 - to, to)
        tl.store(y + row + at, sums, mask=to < columns)
        if exclusive and first == 0:
            tl.store(y + row + tl.where(reverse, columns - 1, 0), 0.0)
        base += tl.sum(values)


@takes(longest=256)  # sums 128 at a time, each from the start: equal elements drift further than lanes let them
def cumsum_triton(x, exclusive=False, reverse=False):
    y = torch.empty_like(x)
    if y.numel():
        cumsum_kernel[(math.prod(x.shape[:-1]),)](x, y, x.shape[-1], exclusive, reverse, SIZE=128)
    return y
# [/cumsum_triton]
