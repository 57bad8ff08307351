"""What a user would pick instead of a paged cache; bench/baselines/op_baselines.py says what the tables are."""

import torch


def assigned(k, v, slots, k_cache, v_cache):
    """Which of several tokens of one slot stays is left open."""
    known = slots >= 0
    page, place = slots[known] // k_cache.shape[1], slots[known] % k_cache.shape[1]
    k_cache[page, place] = k[known]
    v_cache[page, place] = v[known]
    return k_cache, v_cache


def scaled(case):
    """Of a cache of codes, or with scales: PyTorch indexes no float8, and its attention takes none."""
    return any(case.parameter(name, 0) for name in ("C", "k_scale", "v_scale"))


def append(case):
    k, v, slots, k_cache, v_cache = case.many("k", "v", "slots", "k_cache", "v_cache")
    if scaled(case):
        return None
    return assigned, [k, v, slots, k_cache, v_cache], ["k_cache", "v_cache"]


def gathered(q, k_cache, v_cache, page_table, scale):
    """Of full lengths and one query per sequence: each one's pages copied side by side, then attention to all."""
    k, v = (x[page_table.long()].flatten(1, 2).transpose(1, 2) for x in (k_cache, v_cache))
    y = torch.nn.functional.scaled_dot_product_attention(q.transpose(1, 2), k, v, scale=scale,
                                                         enable_gqa=q.shape[2] != k.shape[1])
    return y.transpose(1, 2)


def attention(case):
    q, k_cache, v_cache, table = case.many("q", "k_cache", "v_cache", "page_table")
    if scaled(case) or q.shape[1] != 1 or case.parameter("window_left", -1) >= 0 or case.parameter("softcap", 0) or not case.parameter("full", 0):
        return None
    return gathered, [q, k_cache, v_cache, table, case.parameter("scale", 0) or None], ["y"]


PYTORCH = {"kv_cache_append": append, "paged_attention": attention}
