"""Attention to codes with scales in two languages: rooftile/ops/languages.py says how these functions are found, run and judged."""

import math

from languages import takes, torch, trap

CODES = ("f32", "f8e4m3", "f8e5m2")  # of 16 bits a GPU's weights are rounded to them


# [attention_scaled_plain]
@takes(dtypes=CODES)
def attention_scaled_plain(q, k, v, q_scale=None, k_scale=None, v_scale=None, causal=0):
    """Codes are multiplied as they are: a head's scales leave both sums."""
    if not (q and q[0] and q[0][0] and k[0] and k[0][0]):
        return None, None  # lists without elements have no width

    def of(scale, n, g):
        return scale[n][g] if scale else 1.0

    y, lse = [], []
    for n, (queries, keys, values) in enumerate(zip(q, k, v)):
        group = len(queries[0]) // len(keys[0])
        y.append([[None] * len(queries[0]) for _ in queries])
        lse.append([[None] * len(queries) for _ in queries[0]])
        for i, heads in enumerate(queries):
            end = max(0, i + len(keys) - len(queries) + 1) if causal else len(keys)
            for h, row in enumerate(heads):
                g = h // group
                scale = of(q_scale, n, g) * of(k_scale, n, g) / math.sqrt(len(row))
                s = [scale * sum(a * b for a, b in zip(row, key[g])) for key in keys[:end]]
                most = max(s, default=0)
                p = [math.exp(x - most) for x in s]
                each = of(v_scale, n, g) / (sum(p) or 1)
                y[n][i][h] = [each * sum(w * value[g][e] for w, value in zip(p, values)) for e in range(len(values[0][g]))]
                lse[n][h][i] = most + math.log(sum(p)) if p else -math.inf
    return y, lse
# [/attention_scaled_plain]


# [attention_scaled_torch]
def dequantized(codes, scale, group=1):
    """Numbers times their head's scale, a key head's for each head of its group: {B, H, S, D}."""
    x = codes.double()
    if scale is not None:
        x = x * scale.double().repeat_interleave(codes.shape[2] // max(scale.shape[1], 1), 1)[:, None, :, None]
    return x.repeat_interleave(group, 2).transpose(1, 2)


@takes(dtypes=CODES)
def attention_scaled_torch(q, k, v, q_scale=None, k_scale=None, v_scale=None, causal=0):
    """PyTorch's attention takes no codes: dequantised, in f64 for their every digit."""
    group = q.shape[2] // max(k.shape[2], 1)
    q, k, v = dequantized(q, q_scale), dequantized(k, k_scale, group), dequantized(v, v_scale, group)
    mask = torch.ones(q.shape[2], k.shape[2], dtype=torch.bool, device=q.device)
    if causal:
        mask = mask.tril(k.shape[2] - q.shape[2])
    y = torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask).transpose(1, 2)
    s = (q @ k.mT / math.sqrt(q.shape[3])).masked_fill(~mask, -math.inf)
    return y.where(mask.any(1)[:, None, None], 0).float(), s.logsumexp(3).float()
# [/attention_scaled_torch]


# [attention_scaled_torch_traps]
@takes(dtypes=CODES)
@trap("q's scale is left out: scores are of the right order, and of another temperature")
def attention_scaled_torch_no_q_scale(q, k, v, q_scale=None, k_scale=None, v_scale=None, causal=0):
    return attention_scaled_torch(q, k, v, None, k_scale, v_scale, causal)


@takes(dtypes=CODES)
@trap("values have the scale of keys")
def attention_scaled_torch_scale_of_keys(q, k, v, q_scale=None, k_scale=None, v_scale=None, causal=0):
    return attention_scaled_torch(q, k, v, q_scale, k_scale, k_scale, causal)


@takes(dtypes=CODES)
@trap("keys' codes are taken for values")
def attention_scaled_torch_keys(q, k, v, q_scale=None, k_scale=None, v_scale=None, causal=0):
    return attention_scaled_torch(q, k, k if k.shape == v.shape else v, q_scale, k_scale, v_scale, causal)


@takes(dtypes=CODES)
@trap("the first head's scales are all heads'")
def attention_scaled_torch_first_head(q, k, v, q_scale=None, k_scale=None, v_scale=None, causal=0):
    scales = [None if x is None else x[:, :1].expand_as(x) for x in (q_scale, k_scale, v_scale)]
    return attention_scaled_torch(q, k, v, *scales, causal)


@takes(dtypes=CODES)
@trap("the first batch's scales are all batches'")
def attention_scaled_torch_first_batch(q, k, v, q_scale=None, k_scale=None, v_scale=None, causal=0):
    scales = [None if x is None else x[:1].expand_as(x) for x in (q_scale, k_scale, v_scale)]
    return attention_scaled_torch(q, k, v, *scales, causal)


@takes(dtypes=CODES)
@trap("the diagonal is one key too far to the right")
def attention_scaled_torch_next_key(q, k, v, q_scale=None, k_scale=None, v_scale=None, causal=0):
    if causal and q.shape[1]:  # as if one query more came first
        first, _ = attention_scaled_torch(torch.cat((q[:, 1:], q[:, -1:]), 1), k, v, q_scale, k_scale, v_scale, causal)
        return first, attention_scaled_torch(q, k, v, q_scale, k_scale, v_scale, causal)[1]
    return attention_scaled_torch(q, k, v, q_scale, k_scale, v_scale, causal)
# [/attention_scaled_torch_traps]
