"""Dropout in four languages: rooftile/ops/languages.py says how these functions are found, run and judged.

Element i of the flattened tensor is kept where word i % 4 of Philox's counter offset + i/4 is p·2^32 or more.
"""

import math

from languages import np, tl, torch, trap, triton

FACTORS, STEPS, LOW = (0xD2511F53, 0xCD9E8D57), (0x9E3779B9, 0xBB67AE85), 0xFFFFFFFF


# [philox_plain]
def philox_plain(counter, seed):
    """Four words of 32 bits."""
    a, b, c, d = counter & LOW, counter >> 32 & LOW, 0, 0
    key, key2 = seed & LOW, seed >> 32 & LOW
    for _ in range(10):
        first, second = FACTORS[0] * a, FACTORS[1] * c
        a, b, c, d = second >> 32 ^ b ^ key, second & LOW, first >> 32 ^ d ^ key2, first & LOW
        key, key2 = key + STEPS[0] & LOW, key2 + STEPS[1] & LOW
    return a, b, c, d
# [/philox_plain]


# [dropout_plain]
def dropout_plain(x, seed, offset=None, residual=None, p=0.5):
    y, scale = [], 1 / (1 - p) if p < 1 else 0.0
    seed, offset = int(seed[0]), int(offset[0]) if offset else 0
    for i, value in enumerate(x):
        if i % 4 == 0:
            words = philox_plain(offset + i // 4, seed)
        kept = words[i % 4] >= p * 2**32
        value = value * scale if kept else 0.0
        y.append(value + residual[i] if residual else value)
    return y
# [/dropout_plain]


# [dropout_numpy]
def kept_numpy(shape, seed, offset, p):
    """All counters at once, in numbers of 64 bits."""
    n, low = math.prod(shape), np.uint64(LOW)
    with np.errstate(over="ignore"):
        first = np.uint64(0) if offset is None else offset.reshape(-1)[:1].astype(np.int64).view(np.uint64)[0]
        counter = first + np.arange(-(-n // 4), dtype=np.uint64)
        key = int(seed.reshape(-1)[0]) & 2**64 - 1
        a, b, c, d = counter & low, counter >> np.uint64(32), np.zeros_like(counter), np.zeros_like(counter)
        for r in range(10):
            k, k2 = (np.uint64((key >> 32 * w) + r * STEPS[w] & LOW) for w in (0, 1))
            up, up2 = np.uint64(FACTORS[0]) * a, np.uint64(FACTORS[1]) * c
            a, b, c, d = up2 >> np.uint64(32) ^ b ^ k, up2 & low, up >> np.uint64(32) ^ d ^ k2, up & low
    words = np.stack([a, b, c, d], -1).reshape(-1)[:n]
    return (words.astype(np.float64) >= p * 2.0**32).reshape(shape)


def dropout_numpy(x, seed, offset=None, residual=None, p=0.5):
    kept, values = kept_numpy(x.shape, seed, offset, p), x.astype(np.float64)
    y = np.where(kept, values / (1 - p), 0) if p < 1 else np.zeros(x.shape)
    return (y if residual is None else y + residual.astype(np.float64)).astype(x.dtype)
# [/dropout_numpy]


# [dropout_numpy_product]
@trap("a product with the mask: 0·∞ is NaN")
def dropout_numpy_product(x, seed, offset=None, residual=None, p=0.5):
    mask = kept_numpy(x.shape, seed, offset, p) / (1 - p) if p < 1 else np.zeros(x.shape)
    with np.errstate(invalid="ignore"):
        y = x.astype(np.float64) * mask
    return (y if residual is None else y + residual.astype(np.float64)).astype(x.dtype)
# [/dropout_numpy_product]


# [dropout_torch]
def product_torch(a, factor):
    """The upper and the lower 32 bits; PyTorch's numbers of 64 bits have a sign, so by halves of 16."""
    upper, lower = (a >> 16) * factor, (a & 0xFFFF) * factor  # below 2^48
    middle = upper + (lower >> 16)
    return middle >> 16, (middle & 0xFFFF) << 16 | lower & 0xFFFF


def kept_torch(x, seed, offset, p):
    n = x.numel()
    counter = torch.arange(-(-n // 4), device=x.device)
    if offset is not None:
        counter = counter + offset.reshape(-1)[:1].long()  # wraps
    key = seed.reshape(-1)[:1].long()
    keys = [key & LOW, key >> 32 & LOW]
    a, b = counter & LOW, counter >> 32 & LOW
    c, d = torch.zeros_like(a), torch.zeros_like(a)
    for _ in range(10):
        (high, low), (high2, low2) = product_torch(a, FACTORS[0]), product_torch(c, FACTORS[1])
        a, b, c, d = high2 ^ b ^ keys[0], low2, high ^ d ^ keys[1], low
        keys = [k + step & LOW for k, step in zip(keys, STEPS)]
    return (torch.stack([a, b, c, d], -1).reshape(-1)[:n].double() >= p * 2.0**32).reshape(x.shape)


def dropout_torch(x, seed, offset=None, residual=None, p=0.5):
    y = torch.where(kept_torch(x, seed, offset, p), x.double() / (1 - p) if p < 1 else 0.0, 0.0)
    return (y if residual is None else y + residual.double()).to(x.dtype)
# [/dropout_torch]


# [dropout_backward_torch]
def dropout_backward_torch(dy, seed, offset=None, p=0.5):
    """The forward's mask, from the seed."""
    return dropout_torch(dy, seed, offset, None, p), dy
# [/dropout_backward_torch]


# [dropout_backward_torch_new_mask]
@trap("a mask of its own: the seed is not the forward's")
def dropout_backward_torch_new_mask(dy, seed, offset=None, p=0.5):
    return dropout_torch(dy, seed + 1, offset, None, p), dy
# [/dropout_backward_torch_new_mask]


# [dropout_triton]
@triton.jit
def dropout_kernel(x, seed, offset, residual, y, n, p, scale, GROUPS: tl.constexpr):
    """One program, GROUPS counters: each has four neighbours, whose words tl.philox gives at once."""
    group = tl.program_id(0).to(tl.int64) * GROUPS + tl.arange(0, GROUPS)
    key = tl.load(seed).to(tl.int64)
    counter = group
    if offset is not None:
        counter += tl.load(offset).to(tl.int64)
    low, high = counter.to(tl.uint32, bitcast=False), (counter >> 32).to(tl.uint32)
    zero = low * 0
    a, b, c, d = tl.philox(key, low, high, zero, zero)
    for word in tl.static_range(4):
        random = a if word == 0 else b if word == 1 else c if word == 2 else d
        at = group * 4 + word
        values = tl.load(x + at, mask=at < n, other=0.0).to(tl.float32)
        values = tl.where(random.to(tl.uint32).to(tl.float64) * (1.0 / 4294967296.0) >= p, values * scale, 0.0)
        if residual is not None:
            values += tl.load(residual + at, mask=at < n, other=0.0).to(tl.float32)
        tl.store(y + at, values, mask=at < n)


def dropout_triton(x, seed, offset=None, residual=None, p=0.5):
    y, n, groups = torch.empty_like(x), x.numel(), 256
    if n:
        scale = 1 / (1 - p) if p < 1 else 0.0
        dropout_kernel[(triton.cdiv(n, 4 * groups),)](x, seed, offset, residual, y, n, p, scale, GROUPS=groups)
    return y
# [/dropout_triton]
