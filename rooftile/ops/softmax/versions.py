"""Softmax in six languages: rooftile/ops/languages.py says how these functions are found, run and judged."""

import math

from languages import ct, cuda, np, takes, tl, torch, trap, triton

THREADS = 32  # of a CUDA block, which has one row


# [softmax_plain]
def softmax_plain(x, scale=1.0, log=False):
    """Row by row: exp(scale·x - largest) / sum. The largest element's power is 1, so none overflows."""
    y = []
    for row in x:
        values = [scale * value for value in row]
        largest = -math.inf
        for value in values:
            if value > largest:
                largest = value
        total = 0.0
        for value in values:
            total += math.exp(value - largest)
        if log:
            y.append([value - largest - math.log(total) for value in values])
        else:
            y.append([math.exp(value - largest) / total for value in values])
    return y
# [/softmax_plain]


# [softmax_numpy]
def softmax_numpy(x, scale=1.0, log=False):
    values = scale * x.astype(np.float64)  # scale·x may leave f32's range
    shifted = values - np.max(values, axis=-1, keepdims=True, initial=-np.inf)
    total = np.exp(shifted).sum(axis=-1, keepdims=True)
    y = shifted - np.log(total) if log else np.exp(shifted) / total
    return y.astype(x.dtype)
# [/softmax_numpy]


# [softmax_numpy_no_maximum]
@trap("exp overflows from 89 on: the row's maximum is not taken off")
def softmax_numpy_no_maximum(x, scale=1.0, log=False):
    powers = np.exp(scale * x.astype(np.float32))
    share = powers / powers.sum(axis=-1, keepdims=True)
    return (np.log(share) if log else share).astype(x.dtype)
# [/softmax_numpy_no_maximum]


# [softmax_torch]
def softmax_torch(x, scale=1.0, log=False):
    values = scale * x.double()
    return (torch.log_softmax(values, -1) if log else torch.softmax(values, -1)).to(x.dtype)
# [/softmax_torch]


# [softmax_triton]
@triton.jit
def softmax_kernel(x, y, columns, scale, LOG: tl.constexpr, SIZE: tl.constexpr):
    """One program, one row, held in registers."""
    row = tl.program_id(0).to(tl.int64)
    column = tl.arange(0, SIZE)
    mask = column < columns
    values = tl.load(x + row * columns + column, mask=mask, other=0.0).to(tl.float32)
    # The element whose product with the scale is largest.
    if scale >= 0:
        largest = tl.max(tl.where(mask, values, -float("inf")), 0)
    else:
        largest = tl.min(tl.where(mask, values, float("inf")), 0)
    # Half the difference: between huge numbers of both signs the whole one overflows.
    shifted = (values * 0.5 - largest * 0.5) * scale * 2
    powers = tl.where(mask, tl.exp(shifted), 0.0)
    total = tl.sum(powers, 0)
    result = shifted - tl.log(total) if LOG else powers / total
    tl.store(y + row * columns + column, result.to(y.dtype.element_ty), mask=mask)


@takes(longest=65536)
def softmax_triton(x, scale=1.0, log=False):
    y = torch.empty_like(x)
    rows, columns = x.shape
    if x.numel() > 0:
        softmax_kernel[(rows,)](x, y, columns, scale, bool(log), SIZE=triton.next_power_of_2(columns))
    return y
# [/softmax_triton]


# [softmax_triton_unmasked]
@triton.jit
def softmax_unmasked(x, y, columns, SIZE: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    column = tl.arange(0, SIZE)
    values = tl.load(x + row * columns + column, mask=column < columns, other=0.0).to(tl.float32)
    powers = tl.exp(values - tl.max(values, 0))
    tl.store(y + row * columns + column, (powers / tl.sum(powers, 0)).to(y.dtype.element_ty), mask=column < columns)


@trap("lanes past the row's end read 0, and add exp(0 - largest) to the sum")
@takes(longest=65536)
def softmax_triton_unmasked(x):
    y = torch.empty_like(x)
    if x.numel() > 0:
        softmax_unmasked[(x.shape[0],)](x, y, x.shape[1], SIZE=triton.next_power_of_2(x.shape[1]))
    return y
# [/softmax_triton_unmasked]


# [softmax_numba]
@cuda.jit
def softmax_threads(x, y, scale, log):
    """One block, one row: each thread reduces every 32nd element, then the block the threads' values."""
    shared = cuda.shared.array(THREADS, np.float64)
    row, thread, columns = cuda.blockIdx.x, cuda.threadIdx.x, x.shape[1]
    largest = -math.inf
    for i in range(thread, columns, THREADS):
        largest = max(largest, scale * np.float64(x[row, i]))
    shared[thread] = largest
    cuda.syncthreads()
    for other in range(THREADS):  # each thread reads what all have: no tree, and no second barrier
        largest = max(largest, shared[other])
    cuda.syncthreads()  # before the same memory takes the sums
    total = 0.0
    for i in range(thread, columns, THREADS):
        total += math.exp(scale * np.float64(x[row, i]) - largest)
    shared[thread] = total
    cuda.syncthreads()
    total = 0.0
    for other in range(THREADS):
        total += shared[other]
    for i in range(thread, columns, THREADS):
        shifted = scale * np.float64(x[row, i]) - largest
        y[row, i] = shifted - math.log(total) if log else math.exp(shifted) / total


def softmax_numba(x, scale=1.0, log=False):
    y = cuda.device_array(x.shape, x.dtype)
    if x.size > 0:
        softmax_threads[x.shape[0], THREADS](x, y, scale, log)
    return y
# [/softmax_numba]


# [softmax_cutile]
@ct.kernel
def softmax_tiles(x, y, scale, UP: ct.Constant[bool], LOG: ct.Constant[bool], SIZE: ct.Constant[int]):
    """One tile, one row, as the Triton kernel has it."""
    row = ct.bid(0)
    inside = ct.arange(SIZE, dtype=ct.int32) < x.shape[1]
    values = ct.load(x, (row, 0), (1, SIZE)).astype(ct.float32)
    if UP:
        largest = ct.max(ct.where(inside, values, -math.inf), axis=1, keepdims=True)
    else:
        largest = ct.min(ct.where(inside, values, math.inf), axis=1, keepdims=True)
    shifted = (values * 0.5 - largest * 0.5) * scale * 2
    powers = ct.where(inside, ct.exp(shifted), 0.0)
    total = ct.sum(powers, axis=1, keepdims=True)
    result = shifted - ct.log(total) if LOG else powers / total
    ct.store(y, (row, 0), result.astype(y.dtype))


@takes(longest=16384)
def softmax_cutile(x, scale=1.0, log=False):
    y = torch.empty_like(x)
    rows, columns = x.shape
    if x.numel() > 0:
        arguments = (x, y, scale, scale >= 0, bool(log), 1 << (columns - 1).bit_length())
        ct.launch(torch.cuda.current_stream(), (rows,), softmax_tiles, arguments)
    return y
# [/softmax_cutile]


# [softmax_backward_plain]
def softmax_backward_plain(y, dy, scale=1.0, log=False):
    dx = []
    for shares, slopes in zip(y, dy):
        total = 0.0
        for share, slope in zip(shares, slopes):
            total += slope if log else share * slope
        if log:
            dx.append([scale * (slope - math.exp(share) * total) for share, slope in zip(shares, slopes)])
        else:
            dx.append([scale * (share * (slope - total)) for share, slope in zip(shares, slopes)])
    return dx
# [/softmax_backward_plain]


# [softmax_backward_numpy]
def softmax_backward_numpy(y, dy, scale=1.0, log=False):
    shares, slopes = y.astype(np.float64), dy.astype(np.float64)
    total = (slopes if log else shares * slopes).sum(axis=-1, keepdims=True)
    dx = slopes - np.exp(shares) * total if log else shares * (slopes - total)
    return (scale * dx).astype(y.dtype)
# [/softmax_backward_numpy]


# [softmax_backward_torch]
def softmax_backward_torch(y, dy, scale=1.0, log=False):
    shares, slopes = y.double(), dy.double()
    total = (slopes if log else shares * slopes).sum(-1, keepdim=True)
    dx = slopes - shares.exp() * total if log else shares * (slopes - total)
    return (scale * dx).to(y.dtype)
# [/softmax_backward_torch]


# [softmax_backward_triton]
@triton.jit
def softmax_backward_kernel(y, dy, dx, columns, scale, LOG: tl.constexpr, SIZE: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    column = tl.arange(0, SIZE)
    mask, at = column < columns, row * columns + column
    share = tl.load(y + at, mask=mask, other=0.0).to(tl.float32)
    slope = tl.load(dy + at, mask=mask, other=0.0).to(tl.float32)
    total = tl.sum(slope if LOG else share * slope, 0)
    result = slope - tl.exp(share) * total if LOG else share * (slope - total)
    tl.store(dx + at, (scale * result).to(dx.dtype.element_ty), mask=mask)


@takes(longest=65536)
def softmax_backward_triton(y, dy, scale=1.0, log=False):
    dx = torch.empty_like(y)
    rows, columns = y.shape
    if y.numel() > 0:
        size = triton.next_power_of_2(columns)
        softmax_backward_kernel[(rows,)](y, dy, dx, columns, scale, bool(log), SIZE=size)
    return dx
# [/softmax_backward_triton]
