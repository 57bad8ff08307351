"""A paged KV cache in four languages: rooftile/ops/languages.py says how these functions are found, run and judged.

kv_cache_append gives the two caches, paged_attention y and lse.
"""

import math

from languages import np, takes, tl, torch, trap, triton


# [kv_cache_append_plain]
def kv_cache_append_plain(k, v, slots, k_cache, v_cache):
    """Token by token, so that a slot's last one stays."""
    size = len(k_cache[0]) if k_cache else 0
    for i, slot in enumerate(slots):
        if 0 <= slot < len(k_cache) * size:
            k_cache[slot // size][slot % size] = k[i]
            v_cache[slot // size][slot % size] = v[i]
    return k_cache, v_cache
# [/kv_cache_append_plain]


# [kv_cache_append_numpy]
def kv_cache_append_numpy(k, v, slots, k_cache, v_cache):
    """NumPy assigns the last of several values to one index."""
    known = (slots >= 0) & (slots < k_cache.shape[0] * k_cache.shape[1])
    page, place = np.divmod(slots[known], max(k_cache.shape[1], 1))
    k_cache, v_cache = k_cache.copy(), v_cache.copy()
    k_cache[page, place], v_cache[page, place] = k[known], v[known]
    return k_cache, v_cache
# [/kv_cache_append_numpy]


# [kv_cache_append_torch]
def in_cache_torch(x, scale, cache):
    """In the cache's dtype; codes saturate."""
    if scale is None and x.dtype == cache.dtype:
        return x
    x = x.float() if scale is None else x.float() * (1 / scale)[:, None]
    return (x.clamp(-torch.finfo(cache.dtype).max, torch.finfo(cache.dtype).max) if cache.element_size() == 1 else x).to(cache.dtype)


@takes(dtypes=("f32", "f16", "bf16", "i64", "i32", "f8e4m3", "f8e5m2"))
def kv_cache_append_torch(k, v, slots, k_cache, v_cache, k_scale=None, v_scale=None):
    """PyTorch leaves open which of several values an index gets: each slot takes the one from its last token."""
    count = k_cache.shape[0] * k_cache.shape[1]
    slots = slots.reshape(-1).long()
    known = (slots >= 0) & (slots < count)
    places = torch.arange(len(slots), device=slots.device)
    last = torch.full((count,), -1, device=slots.device).scatter_reduce(0, slots[known], places[known], "amax")
    caches = []
    for x, scale, cache in ((k, k_scale, k_cache), (v, v_scale, v_cache)):
        x = in_cache_torch(x.reshape(len(slots), *x.shape[-2:]), scale, cache)
        whole = torch.uint8 if cache.element_size() == 1 else cache.dtype  # PyTorch indexes bytes, not each float8
        flat = cache.reshape(count, *cache.shape[2:]).clone()
        flat.view(whole)[last >= 0] = x.view(whole)[last[last >= 0]]
        caches.append(flat.reshape(cache.shape))
    return tuple(caches)
# [/kv_cache_append_torch]


# [kv_cache_append_triton]
@triton.jit
def append_kernel(k, v, slots, k_cache, v_cache, tokens, count, k_width, v_width, BLOCK: tl.constexpr):
    """One program, one token: it copies its rows unless a later token has its slot."""
    i = tl.program_id(0).to(tl.int64)
    slot = tl.load(slots + i).to(tl.int64)
    later = 0
    for first in range(0, tokens, BLOCK):
        j = first + tl.arange(0, BLOCK)
        others = tl.load(slots + j, mask=j < tokens, other=-1).to(tl.int64)
        later += tl.sum(((j > i) & (others == slot)).to(tl.int32))
    stays = (slot >= 0) & (slot < count) & (later == 0)
    k_end, v_end = tl.where(stays, k_width, 0), tl.where(stays, v_width, 0)
    for first in range(0, k_width, BLOCK):
        c = first + tl.arange(0, BLOCK)
        here = c < k_end
        tl.store(k_cache + slot * k_width + c, tl.load(k + i * k_width + c, mask=here), mask=here)
    for first in range(0, v_width, BLOCK):
        c = first + tl.arange(0, BLOCK)
        here = c < v_end
        tl.store(v_cache + slot * v_width + c, tl.load(v + i * v_width + c, mask=here), mask=here)


def kv_cache_append_triton(k, v, slots, k_cache, v_cache):
    k_cache, v_cache = k_cache.clone(), v_cache.clone()
    if len(slots) and k_cache.numel() + v_cache.numel():
        append_kernel[(len(slots),)](k, v, slots, k_cache, v_cache, len(slots), k_cache.shape[0] * k_cache.shape[1],
                                     k.shape[1] * k.shape[2], v.shape[1] * v.shape[2], 128)
    return k_cache, v_cache
# [/kv_cache_append_triton]


# [kv_cache_append_numpy_from_the_end]
@trap("NumPy reads slot -1, which stands for none, as the last one")
def kv_cache_append_numpy_from_the_end(k, v, slots, k_cache, v_cache):
    k_cache, v_cache = k_cache.copy(), v_cache.copy()
    count = k_cache.shape[0] * k_cache.shape[1]
    here = slots < count
    k_cache.reshape(count, *k_cache.shape[2:])[slots[here] % max(count, 1)] = k[here]
    v_cache.reshape(count, *v_cache.shape[2:])[slots[here] % max(count, 1)] = v[here]
    return k_cache, v_cache
# [/kv_cache_append_numpy_from_the_end]


# [paged_attention_plain]
def paged_attention_plain(q, k_cache, v_cache, page_table, lengths):
    """Sequence by sequence, query by query, head by head; token j is in the sequence's (j / N)-th page."""
    if not (q and q[0] and q[0][0] and k_cache and k_cache[0] and k_cache[0][0]):
        return None, None  # lists without elements have no width
    size, width, group = len(k_cache[0]), len(v_cache[0][0][0]), len(q[0][0]) // len(k_cache[0][0])
    y, lse = [], [[[math.nan] * len(rows) for _ in rows[0]] for rows in q]
    for n, rows in enumerate(q):
        y.append([[[math.nan] * width for _ in heads] for heads in rows])
        if not 0 <= lengths[n] <= len(page_table[n]) * size:
            continue
        for i, heads in enumerate(rows):
            end = max(lengths[n] - len(rows) + i + 1, 0)  # itself and all before it
            tokens = [(page_table[n][j // size], j % size) for j in range(end)]
            if not all(0 <= page < len(k_cache) for page, _ in tokens):
                continue
            for h, x in enumerate(heads):
                keys = [k_cache[page][place][h // group] for page, place in tokens]
                values = [v_cache[page][place][h // group] for page, place in tokens]
                s = [sum(a * b for a, b in zip(x, key)) / math.sqrt(len(x)) for key in keys]
                most = max(s, default=0)
                p = [math.exp(score - most) for score in s]
                y[n][i][h] = [sum(w * value[c] for w, value in zip(p, values)) / (sum(p) or 1) for c in range(width)]
                lse[n][h][i] = most + math.log(sum(p)) if p else -math.inf
    return y, lse
# [/paged_attention_plain]


# [paged_attention_numpy]
def paged_attention_numpy(q, k_cache, v_cache, page_table, lengths, window_left=-1, scale=0.0, softcap=0.0):
    """Sequence by sequence: its pages side by side are its keys and values, and then it is attention."""
    (pages, size, g), queries, heads = k_cache.shape[:3], *q.shape[1:3]
    y = np.full((*q.shape[:3], v_cache.shape[3]), np.nan)
    lse = np.full((q.shape[0], heads, queries), np.nan)
    for n, length in enumerate(lengths):
        if not 0 <= length <= page_table.shape[1] * size:
            continue
        j = np.arange(length)
        page = page_table[n, j // max(size, 1)]
        known = (page >= 0) & (page < pages)
        k, v = (np.repeat(x[page.clip(0, max(pages - 1, 0)), j % max(size, 1)].astype(np.float64), heads // max(g, 1), axis=1)
                if pages else np.zeros((length, heads, x.shape[3])) for x in (k_cache, v_cache))
        s = np.einsum("shd,thd->hst", q[n].astype(np.float64), k) * (np.float32(scale) or 1 / math.sqrt(q.shape[3]))
        if softcap:
            s = softcap * np.tanh(s / softcap)
        own = length - queries + np.arange(queries)[:, None]
        seen = (j <= own) & ((window_left < 0) | (j >= own - window_left))
        s = np.where(seen, s, -np.inf)
        most = s.max(axis=2, keepdims=True, initial=-np.inf)
        most = np.where(np.isinf(most), 0, most)
        p = np.exp(s - most)
        total = p.sum(axis=2)
        with np.errstate(divide="ignore"):
            lse[n] = most[..., 0] + np.log(total)
        y[n] = np.einsum("hst,the->she", p / np.where(total == 0, 1, total)[..., None], v)
        nowhere = (seen & ~known).any(axis=1)
        y[n, nowhere], lse[n][:, nowhere] = np.nan, np.nan
    return y.astype(q.dtype), lse.astype(np.float32)
# [/paged_attention_numpy]


# [paged_attention_torch]
@takes(dtypes=("f32", "i32", "f8e4m3", "f8e5m2"))  # of 16 bits its weights are rounded to them
def paged_attention_torch(q, k_cache, v_cache, page_table, lengths, k_scale=None, v_scale=None):
    """Each sequence gathered into keys and values of its own, as long as it is: PyTorch's attention knows no pages."""
    queries, size, pages = q.shape[1], k_cache.shape[1], len(k_cache)
    k_cache, v_cache = (x.float() if scale is None else x.float() * scale[:, None]
                        for x, scale in ((k_cache, k_scale), (v_cache, v_scale)))
    y = q.new_full((*q.shape[:3], v_cache.shape[3]), math.nan)
    lse = q.new_full((len(q), q.shape[2], queries), math.nan)
    for n, length in enumerate(lengths.tolist()):
        if not 0 <= length <= page_table.shape[1] * size:
            continue
        j = torch.arange(length, device=q.device)
        page = page_table[n].long()[j // max(size, 1)]
        known = (page >= 0) & (page < pages)
        seen = j <= length - queries + torch.arange(queries, device=q.device)[:, None]
        good = ~(seen & ~known).any(1)
        flat = [x.flatten(0, 1)[(page * size + j % max(size, 1)).where(known, 0)].transpose(0, 1)[None] if pages
                else x.new_zeros(1, x.shape[2], length, x.shape[3]) for x in (k_cache, v_cache)]
        k, v = (x.repeat_interleave(q.shape[2] // max(k_cache.shape[2], 1), 1) for x in flat)
        rows = torch.nn.functional.scaled_dot_product_attention(q[n].transpose(0, 1)[None], k, v, attn_mask=seen)
        rows = rows[0].transpose(0, 1).where(seen.any(1)[:, None, None], 0)
        y[n] = rows.where(good[:, None, None], math.nan)
        s = torch.einsum("shd,htd->hst", q[n].double(), k[0].double()) / math.sqrt(q.shape[3])
        lse[n] = s.masked_fill(~seen, -math.inf).logsumexp(2).where(good, math.nan)
    return y, lse
# [/paged_attention_torch]


# [paged_attention_triton]
@triton.jit
def paged_kernel(q, k_cache, v_cache, table, lengths, y, lse, queries, heads, pages, size, groups, each, d, e, scale,
                 D: tl.constexpr, E: tl.constexpr, BLOCK: tl.constexpr):
    """One program, one query of one head: its keys BLOCK at a time through the page table, the softmax on the way."""
    n, i, h = tl.program_id(0).to(tl.int64), tl.program_id(1), tl.program_id(2)
    length = tl.load(lengths + n)
    possible = (length >= 0) & (length <= each * size)
    end = tl.where(possible, length - queries + i + 1, 0)
    c, o = tl.arange(0, D), tl.arange(0, E)
    row = (n * queries + i) * heads + h
    x = tl.load(q + row * d + c, mask=c < d, other=0).to(tl.float32) * scale
    most, total, sums = -float("inf"), 0.0, tl.zeros([E], tl.float32)
    for first in range(0, end, BLOCK):
        j = first + tl.arange(0, BLOCK)
        page = tl.load(table + n * each + j // size, mask=j < end, other=0).to(tl.int64)
        possible = possible & (tl.sum(((j < end) & ((page < 0) | (page >= pages))).to(tl.int32)) == 0)
        here = (j < end) & (page >= 0) & (page < pages)
        at = ((page * size + j % size) * groups + h // (heads // groups))[:, None]
        key = tl.load(k_cache + at * d + c, mask=here[:, None] & (c < d), other=0).to(tl.float32)
        s = tl.where(j < end, tl.sum(x * key, 1), -float("inf"))
        now = tl.maximum(most, tl.max(s))
        p = tl.exp(s - now)
        value = tl.load(v_cache + at * e + o, mask=here[:, None] & (o < e), other=0).to(tl.float32)
        shrink = tl.exp(most - now)
        sums = sums * shrink + tl.sum(p[:, None] * value, 0)
        total, most = total * shrink + tl.sum(p), now
    mean = tl.where(possible, sums / tl.where(total == 0, 1, total), float("nan"))
    tl.store(y + row * e + o, mean, mask=o < e)
    tl.store(lse + (n * heads + h) * queries + i, tl.where(possible, most + tl.log(total), float("nan")))


@takes(dtypes=("f32", "f16", "i32"))
def paged_attention_triton(q, k_cache, v_cache, page_table, lengths):
    b, queries, heads, d = q.shape
    (pages, size, groups), e = k_cache.shape[:3], v_cache.shape[3]
    y, lse = q.new_empty(b, queries, heads, e), q.new_empty(b, heads, queries, dtype=torch.float32)
    if lse.numel():
        paged_kernel[(b, queries, heads)](q, k_cache, v_cache, page_table, lengths, y, lse, queries, heads, pages, size,
                                          groups, page_table.shape[1], d, e, 1 / math.sqrt(d),
                                          triton.next_power_of_2(d), triton.next_power_of_2(e), 32)
    return y, lse
# [/paged_attention_triton]
