"""The largest of a row, and tokens drawn, in four languages: rooftile/ops/languages.py says how these functions are found, run
and judged.

A weight is ⌊2^30 · e^((x - max x)/temperature)⌋, each step rounded to f32: sums of them are whole numbers of Python, exact.
"""

import math
import struct

from languages import np, tl, torch, trap, triton

LOW, EXP2 = 0xFFFFFFFF, [float.fromhex(c) for c in (
    "0x1.c946aap-14", "0x1.4e2ae2p-10", "0x1.39e3fap-7", "0x1.c6948ep-5", "0x1.ebfacp-3", "0x1.62e42cp-1")]  # fmt: skip


# [top_k_plain]
def top_k_plain(x, k=1):
    values, indices = [], []
    for row in x:
        order = sorted(range(len(row)), key=lambda i: (not math.isnan(row[i]), 0 if math.isnan(row[i]) else -row[i], i))
        indices.append(order[: int(k)])
        values.append([row[i] for i in indices[-1]])
    return values, indices
# [/top_k_plain]


# [top_k_numpy]
def top_k_numpy(x, k=1):
    """A stable sort of -x: NaN last of numpy's order, so first by a second key."""
    wide = x.astype(np.float64)
    order = np.lexsort((-np.where(np.isnan(wide), 0, wide), ~np.isnan(wide)), axis=-1)[..., : int(k)]
    return np.take_along_axis(x, order, -1), order.astype(np.int64)
# [/top_k_numpy]


# [top_k_numpy_reversed]
@trap("an ascending order reversed puts the last of equal ones first")
def top_k_numpy_reversed(x, k=1):
    order = np.argsort(x.astype(np.float64), axis=-1, kind="stable")[..., ::-1][..., : int(k)]
    return np.take_along_axis(x, order, -1), order.astype(np.int64)
# [/top_k_numpy_reversed]


# [top_k_torch]
def top_k_torch(x, k=1):
    order = torch.sort(x.double(), dim=-1, descending=True, stable=True).indices[..., : int(k)]  # NaN is the largest
    return x.gather(-1, order), order
# [/top_k_torch]


# [top_k_triton]
@triton.jit
def top_k_kernel(x, values, indices, columns, k, SIZE: tl.constexpr):
    """One program, one row: k times the largest key, which has the value in its upper half and the place in its lower."""
    row, at = tl.program_id(0).to(tl.int64), tl.arange(0, SIZE)
    its = tl.load(x + row * columns + at, mask=at < columns, other=0.0).to(tl.float32) + 0.0
    bits = its.to(tl.int32, bitcast=True)
    upper = tl.where(its != its, 0x7FFFFFFF, tl.where(bits < 0, bits ^ 0x7FFFFFFF, bits)).to(tl.int64)
    key = tl.where(at < columns, upper * 4294967296 + (2147483647 - at), -9223372036854775807)
    for i in range(k):
        most = tl.max(key)
        place = 2147483647 - (most & 0x7FFFFFFF)
        tl.store(indices + row * k + i, place)
        tl.store(values + row * k + i, tl.load(x + row * columns + place))
        key = tl.where(key == most, -9223372036854775807, key)


def top_k_triton(x, k=1):
    shape = (*x.shape[:-1], int(k))
    values, indices = x.new_empty(shape), torch.empty(shape, dtype=torch.int64, device=x.device)
    if values.numel():
        rows, columns = math.prod(x.shape[:-1]), x.shape[-1]
        top_k_kernel[(rows,)](x, values, indices, columns, int(k), SIZE=triton.next_power_of_2(columns))
    return values, indices
# [/top_k_triton]


# [sample_random]
def sample_random(seed, counter):
    """64 bits of Philox 4x32-10."""
    a, b, c, d = counter & LOW, counter >> 32 & LOW, 1, 0
    for r in range(10):
        key, key2 = seed + r * 0x9E3779B9 & LOW, (seed >> 32) + r * 0xBB67AE85 & LOW
        first, second = 0xD2511F53 * a, 0xCD9E8D57 * c
        a, b, c, d = second >> 32 ^ b ^ key, second & LOW, first >> 32 ^ d ^ key2, first & LOW
    return a << 32 | b
# [/sample_random]


def numbers_of(row, *numbers):
    """A row's key and counter, of seed, offset, seeds and offsets; the latter two, one per row, take the place of its index."""
    flat = [None if n is None else n if isinstance(n, list) else n.reshape(-1) for n in numbers]
    first = [0 if n is None else int(n[0]) for n in flat[:2]]
    its = [0 if n is None else int(n[row]) for n in flat[2:]]
    place = row if flat[2] is flat[3] is None else 0
    return [sum(pair) & 2**64 - 1 for pair in zip(first, (its[0], its[1] + place))]


def scale_of(temperature):
    """log2 e / temperature, within what f32 holds."""
    return min(max(1 / math.log(2) / temperature, 2.0**-126), (2 - 2.0**-23) * 2.0**127) if temperature > 0 else 1.0


# [drawn]
def drawn(weights, shares, random, temperature, top_k, top_p, min_p):
    """The rank of the token in a sorted row."""
    kept = len(weights)
    if temperature == 0 or top_k > 0:
        kept = min(kept, 1 if temperature == 0 else int(top_k))
    if top_p < 1:
        enough, total = max(-(-sum(weights[:kept]) * int(top_p * 2**32) >> 32), 1), 0
        for i in range(kept):
            total += weights[i]
            if total >= enough:
                kept = i + 1
                break
    while min_p > 0 and shares[kept - 1] < math.log2(min_p):
        kept -= 1
    target, total = random * sum(weights[:kept]) >> 64, 0
    for rank, weight in enumerate(weights):
        total += weight
        if total > target:
            return rank
# [/drawn]


# [sample_plain]
def f32(value):
    return struct.unpack("f", struct.pack("f", value))[0]


def weight_plain(share):
    if not share > -31:
        return 0
    n = int(share)
    f = f32(share - n)
    p = EXP2[0]
    for c in (*EXP2[1:], 1.0):
        p = f32(f32(p * f) + c)
    return int(p * 2.0 ** (n + 30))


def sample_plain(logits, seed, offset=None, seeds=None, offsets=None, temperature=1.0, top_k=0, top_p=1.0, min_p=0.0):
    tokens, scale = [], f32(scale_of(temperature))
    for r, row in enumerate(logits):
        if not row or any(map(math.isnan, row)) or max(row) == -math.inf:
            tokens.append(-1)
            continue
        order = sorted(range(len(row)), key=lambda i: -row[i])  # stable: the smallest index first
        most = row[order[0]]
        shares = []
        for i in order:
            try:
                shares.append(0.0 if row[i] == most else f32(f32(row[i] - most) * scale))
            except OverflowError:  # of a float: the share is none
                shares.append(-math.inf)
        random = sample_random(*numbers_of(r, seed, offset, seeds, offsets))
        rank = drawn([weight_plain(s) for s in shares], shares, random, temperature, top_k, top_p, min_p)
        tokens.append(order[rank])
    return tokens
# [/sample_plain]


# [sample_numpy]
def sample_numpy(logits, seed, offset=None, seeds=None, offsets=None, temperature=1.0, top_k=0, top_p=1.0, min_p=0.0):
    single, shape = np.float32, (math.prod(logits.shape[:-1]), logits.shape[-1])
    scale, rows = single(scale_of(temperature)), logits.reshape(shape)
    tokens = np.full(len(rows), -1, np.int64)
    for r, row in enumerate(rows.astype(single)):
        if not row.size or np.isnan(row).any() or row.max() == -np.inf:
            continue
        order = np.argsort(-row, kind="stable")
        with np.errstate(all="ignore"):
            its = row[order]
            shares = np.where(its == its[0], single(0), (its - its[0]) * scale)
            t = np.maximum(shares, single(-31))
        n = np.trunc(t)
        p = single(EXP2[0])
        for c in (*EXP2[1:], 1.0):
            p = p * (t - n) + single(c)
        weights = (p * np.exp2(n + single(30))).astype(np.int64).tolist()
        random = sample_random(*numbers_of(r, seed, offset, seeds, offsets))
        tokens[r] = order[drawn(weights, shares.tolist(), random, temperature, top_k, top_p, min_p)]
    return tokens.reshape(logits.shape[:-1])
# [/sample_numpy]


# [sample_torch]
def sample_torch(logits, seed, offset=None, seeds=None, offsets=None, temperature=1.0, top_k=0, top_p=1.0, min_p=0.0):
    tokens = torch.full(logits.shape[:-1], -1, dtype=torch.int64, device=logits.device)
    if not logits.numel():
        return tokens
    its, order = torch.sort(logits.float(), dim=-1, descending=True, stable=True)
    scale = torch.tensor(scale_of(temperature), dtype=torch.float32, device=logits.device)
    shares = torch.where(its == its[..., :1], 0.0, (its - its[..., :1]) * scale)
    t = shares.clamp(min=-31)
    n = t.trunc()
    p = torch.full_like(t, EXP2[0])
    for c in (*EXP2[1:], 1.0):
        p = (p * (t - n)).add(c)
    weights = (p * torch.exp2(n + 30)).long()
    for r, place in enumerate(torch.cartesian_prod(*map(torch.arange, tokens.shape)).reshape(-1, tokens.dim()).tolist()):
        at = tuple(place)
        if torch.isnan(its[at][0]) or its[at][0] == -math.inf:
            continue
        random = sample_random(*numbers_of(r, seed, offset, seeds, offsets))
        rank = drawn(weights[at].tolist(), shares[at].tolist(), random, temperature, top_k, top_p, min_p)
        tokens[at] = order[at][rank]
    return tokens
# [/sample_torch]


# [sample_numpy_top_p_first]
@trap("temperature comes first: it changes which tokens top_p keeps")
def sample_numpy_top_p_first(logits, seed, offset=None, seeds=None, offsets=None, temperature=1.0, top_k=0, top_p=1.0, min_p=0.0):
    if temperature in (0, 1) or top_p == 1 or not logits.size or not np.isfinite(logits).all():
        return sample_numpy(logits, seed, offset, seeds, offsets, temperature, top_k, top_p, min_p)
    share = np.exp((logits - logits.max(-1, keepdims=True)).astype(np.float64))
    order = np.argsort(-logits, -1, kind="stable")
    sums = np.cumsum(np.take_along_axis(share / share.sum(-1, keepdims=True), order, -1), -1)
    cut = np.concatenate([np.zeros_like(sums[..., :1], bool), sums[..., :-1] >= top_p], -1)
    kept = logits.copy()
    np.put_along_axis(kept, order, np.where(cut, -np.inf, np.take_along_axis(logits, order, -1)), -1)
    return sample_numpy(kept, seed, offset, seeds, offsets, temperature, top_k, 1.0, min_p)
# [/sample_numpy_top_p_first]
