"""Attention in four languages: rooftile/ops/languages.py says how these functions are found, run and judged."""

import math

from languages import np, takes, tl, torch, trap, triton


# [attention_plain]
def attention_plain(q, k, v, causal):
    """Sequence by sequence, head by head, query by query; query i's own key is i + T - S."""
    if not (q and q[0] and q[0][0] and k[0] and k[0][0]):
        return None, None  # lists without elements have no width
    y, lse = [], []
    for n in range(len(q)):
        queries, keys = len(q[n]), len(k[n])
        heads = len(q[n][0]) if queries else 0
        y.append([[None] * heads for _ in range(queries)])
        lse.append([[None] * queries for _ in range(heads)])
        for i in range(queries):
            end = min(keys, max(0, i + keys - queries + 1)) if causal else keys
            for h in range(heads):
                g = h * len(k[n][0]) // heads if keys else 0
                scale = 1 / math.sqrt(len(q[n][i][h]))
                s = [scale * sum(a * b for a, b in zip(q[n][i][h], k[n][j][g])) for j in range(end)]
                most = max(s, default=0)
                p = [math.exp(x - most) for x in s]
                width = len(v[n][0][g]) if keys else len(q[n][i][h])
                y[n][i][h] = [sum(p[j] * v[n][j][g][e] for j in range(end)) / (sum(p) or 1) for e in range(width)]
                lse[n][h][i] = most + math.log(sum(p)) if p else -math.inf
    return y, lse
# [/attention_plain]


# [attention_numpy]
def attention_numpy(q, k, v, causal):
    group = q.shape[2] // k.shape[2] if k.shape[2] else 1
    k, v = (np.repeat(x.astype(np.float64), group, axis=2) for x in (k, v))
    s = np.einsum("bshd,bthd->bhst", q.astype(np.float64), k) / math.sqrt(q.shape[3])
    if causal:
        queries, keys = s.shape[2:]
        s = np.where(np.tri(queries, keys, keys - queries, dtype=bool), s, -np.inf)
    most = s.max(axis=3, keepdims=True, initial=-np.inf)
    p = np.exp(s - np.where(np.isinf(most), 0, most))
    total = p.sum(axis=3, keepdims=True)
    with np.errstate(divide="ignore"):
        lse = (np.where(np.isinf(most), 0, most) + np.log(total))[..., 0]
    return np.einsum("bhst,bthe->bshe", p / np.where(total == 0, 1, total), v).astype(q.dtype), lse.astype(np.float32)
# [/attention_numpy]


def lse_of(q, k, mask):
    """The logarithms of the sums, which PyTorch's function keeps to itself."""
    k = k.repeat_interleave(q.shape[2] // max(k.shape[2], 1), 2)
    s = torch.einsum("bshd,bthd->bhst", q.double(), k.double()) / math.sqrt(q.shape[3])
    return s.masked_fill(~mask, -math.inf).logsumexp(3).float()


# [attention_torch]
@takes(dtypes=("f32",))  # of 16 bits its weights are rounded to them
def attention_torch(q, k, v, causal):
    """The diagonal ends in the lower right corner: a mask says so, is_causal would begin in the upper left one."""
    mask = torch.ones(q.shape[1], k.shape[1], dtype=torch.bool, device=q.device)
    if causal:
        mask = mask.tril(k.shape[1] - q.shape[1])
    y = torch.nn.functional.scaled_dot_product_attention(
        *(x.transpose(1, 2) for x in (q, k, v)), attn_mask=mask, enable_gqa=q.shape[2] != k.shape[2]
    ).transpose(1, 2)
    return y.where(mask.any(1)[:, None, None], 0), lse_of(q, k, mask)
# [/attention_torch]


# [attention_torch_upper_left]
@takes(dtypes=("f32",))
@trap("is_causal's diagonal begins in the upper left corner: with fewer queries than keys the last sees too few")
def attention_torch_upper_left(q, k, v, causal):
    mask = torch.ones(q.shape[1], k.shape[1], dtype=torch.bool, device=q.device)
    return torch.nn.functional.scaled_dot_product_attention(
        *(x.transpose(1, 2) for x in (q, k, v)), is_causal=bool(causal), enable_gqa=q.shape[2] != k.shape[2]
    ).transpose(1, 2), lse_of(q, k, mask)
# [/attention_torch_upper_left]


# [attention_triton]
@triton.jit
def attention_kernel(q, k, v, y, lse, queries, keys, heads, key_heads, width, value_width, scale, CAUSAL: tl.constexpr,
                     ROWS: tl.constexpr, KEYS: tl.constexpr, WIDTH: tl.constexpr, VALUE_WIDTH: tl.constexpr):
    """One program, a block of one head's queries: key block by key block, no row of weights is ever whole."""
    n, h = (tl.program_id(1) // heads).to(tl.int64), tl.program_id(1) % heads
    g = h // (heads // key_heads)
    i, j = tl.program_id(0) * ROWS + tl.arange(0, ROWS), tl.arange(0, KEYS)
    d, e = tl.arange(0, WIDTH), tl.arange(0, VALUE_WIDTH)
    at = ((n * queries + i) * heads + h)[:, None]
    rows = tl.load(q + at * width + d[None, :], mask=(i < queries)[:, None] & (d < width)[None, :], other=0.0)
    last = i + keys - queries if CAUSAL else i * 0 + keys - 1  # the last key that a query sees
    most = tl.full((ROWS,), -float("inf"), tl.float32)
    total, sums = tl.zeros((ROWS,), tl.float32), tl.zeros((ROWS, VALUE_WIDTH), tl.float32)
    # [attention_triton_loop]
    for first in range(0, tl.minimum(tl.max(last, 0) + 1, keys), KEYS):
        there = first + j < keys
        its = ((n * keys + first + j) * key_heads + g)[:, None]
        block = tl.load(k + its * width + d[None, :], mask=there[:, None] & (d < width)[None, :], other=0.0)
        s = tl.dot(rows, block.T, input_precision="ieee") * scale
        s = tl.where(there[None, :] & (first + j[None, :] <= last[:, None]), s, -float("inf"))
        larger = tl.maximum(most, tl.max(s, 1))
        shift = tl.where(larger == -float("inf"), 0.0, larger)  # -inf - -inf is NaN
        p, fade = tl.exp(s - shift[:, None]), tl.exp(most - shift)
        values = tl.load(v + its * value_width + e[None, :], mask=there[:, None] & (e < value_width)[None, :], other=0.0)
        total = total * fade + tl.sum(p, 1)
        # In f32: weights of 16 bits, which tensor cores take, have lost digits.
        sums = tl.dot(p, values.to(tl.float32), sums * fade[:, None], input_precision="ieee")
        most = larger
    # [/attention_triton_loop]
    sees = total > 0
    out = sums / tl.where(sees, total, 1.0)[:, None]
    tl.store(y + at * value_width + e[None, :], out.to(y.dtype.element_ty), mask=(i < queries)[:, None] & (e < value_width)[None, :])
    tl.store(lse + (n * heads + h) * queries + i, tl.where(sees, most + tl.log(tl.where(sees, total, 1.0)), -float("inf")),
             mask=i < queries)


@takes(dtypes=("f32", "f16", "bf16"))
def attention_triton(q, k, v, causal):
    batch, queries, heads, width = q.shape
    keys, key_heads, value_width = v.shape[1:]
    y, lse = q.new_zeros((batch, queries, heads, value_width)), q.new_full((batch, heads, queries), -math.inf, dtype=torch.float32)
    if lse.numel() > 0 and keys > 0:
        rows = 64 if q.is_cuda else 16  # of the interpreter
        attention_kernel[(triton.cdiv(queries, rows), batch * heads)](
            q, k, v, y, lse, queries, keys, heads, key_heads, width, value_width, 1 / math.sqrt(width), CAUSAL=bool(causal),
            ROWS=rows, KEYS=rows, WIDTH=max(16, triton.next_power_of_2(width)),
            VALUE_WIDTH=max(16, triton.next_power_of_2(value_width)))
    return y, lse
# [/attention_triton]


# [attention_triton_tail]
@takes(dtypes=("f32",), only={"causal": 0})
@trap("past the last key the scores are 0, not -inf: keys that do not exist take part of each query's weight")
def attention_triton_tail(q, k, v, causal):
    k, v = (torch.nn.functional.pad(x, (0, 0, 0, 0, 0, -k.shape[1] % 16)) for x in (k, v))  # whole blocks of zeros
    return attention_triton(q, k, v, causal)
# [/attention_triton_tail]
