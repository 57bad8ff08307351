"""torch.nn.functional.scaled_dot_product_attention on the library's attention."""

from typing import Optional

import torch
from torch import Tensor

from rooftile.torch._linear import cast, drawn_seed, said
from rooftile.torch._operators import functions

NAME = "rooftile.torch.scaled_dot_product_attention"


def as_bias(mask, seen=True):
    """A mask as numbers to add to scores: of a bool one -inf where it is not `seen`; others are such numbers."""
    if mask.dtype != torch.bool:
        return mask
    return torch.zeros(mask.shape, device=mask.device).masked_fill_(mask != seen, -torch.inf)


def refuse(q, k, v, mask, dropout_p, is_causal):
    if not 0 <= dropout_p <= 1:
        raise ValueError(f"{NAME}: dropout_p is {dropout_p}, must be a number from 0 to 1")
    if mask is not None and mask.requires_grad and torch.is_grad_enabled():
        raise NotImplementedError(f"{NAME}: attn_mask needs a gradient, which the library does not compute; detach it")
    if mask is not None and is_causal:
        raise ValueError(f"{NAME}: attn_mask and is_causal are both given; add the triangle to the mask")
    if q.dim() < 2 or k.dim() != q.dim() or v.dim() != q.dim():
        raise ValueError(f"{NAME}: query, key and value have {q.dim()}, {k.dim()} and {v.dim()} dimensions, must all have "
                         "as many, 2 or more: (…, heads, length, channels)")


def with_heads(q, k, v, enable_gqa):
    """Sizes that PyTorch's products would repeat; heads that queries share are not."""
    if q.shape[:-2] == k.shape[:-2] == v.shape[:-2]:
        return q, k, v
    heads = [x.shape[-3] for x in (q, k, v)]
    if enable_gqa:
        if any(n == 0 or heads[0] % n for n in heads[1:]):
            raise ValueError(f"{NAME}: query has {heads[0]} heads, key {heads[1]} and value {heads[2]}; must be a multiple of both")
        if heads[1] != heads[2]:
            k, v = (x.repeat_interleave(heads[0] // x.shape[-3], -3) for x in (k, v))
    elif any(n not in (1, max(heads)) for n in heads):
        raise ValueError(f"{NAME}: query has {heads[0]} heads, key {heads[1]} and value {heads[2]}; enable_gqa=True shares them")
    elif heads[1] != heads[2] or heads[0] < heads[1]:
        q, k, v = (x.expand(*x.shape[:-3], max(heads), *x.shape[-2:]) for x in (q, k, v))
    outer = torch.broadcast_shapes(*(x.shape[:-3] for x in (q, k, v)))
    return (x.expand(*outer, *x.shape[-3:]) for x in (q, k, v))


def one_batch(x):
    """(…, heads, length, channels) as (batch, heads, length, channels)."""
    return x.unsqueeze(0) if x.dim() == 3 else x if x.dim() == 4 else x.flatten(0, -4)


def scaled_dot_product_attention(query: Tensor, key: Tensor, value: Tensor, attn_mask: Optional[Tensor] = None,
                                 dropout_p: float = 0.0, is_causal: bool = False, scale: Optional[float] = None,
                                 enable_gqa: bool = False) -> Tensor:
    """As torch.nn.functional's: (…, heads, length, channels), is_causal's diagonal from the upper left corner. A query that sees
    no key gives 0. With dropout_p the seed comes from PyTorch's generator, as nn.Dropout's. Of a mask's gradient it says that it
    has none."""
    refuse(query, key, value, attn_mask, dropout_p, is_causal)
    query, key, value, attn_mask = cast(query, key, value, attn_mask)
    flat = query.dim() == 2
    if flat:
        query, key, value = (x.unsqueeze(0) for x in (query, key, value))
    query, key, value = with_heads(query, key, value, enable_gqa)
    shape, options = query.shape[:-1], {}
    q, k, v = (one_batch(x) for x in (query, key, value))
    queries, keys = q.shape[2], k.shape[2]
    if scale is not None and not scale > 0:  # the library has none below 0, and calls the usual one 0
        q, scale = (-q, -scale) if scale < 0 else (q * scale, 1.0)
    if is_causal and queries <= keys:  # the keys from there on are seen by none
        k, v, options = k[:, :, :queries], v[:, :, :queries], {"causal": True}
    elif is_causal:  # the library's diagonal ends in the lower right corner
        options = {"window_right": queries - keys}
    if attn_mask is not None:
        if any(a not in (1, b) for a, b in zip(attn_mask.shape[::-1], (keys, *shape[::-1]))) or attn_mask.dim() > len(shape) + 1:
            raise ValueError(f"{NAME}: attn_mask is {said(attn_mask)}, must broadcast to {'x'.join(map(str, (*shape, keys)))}: "
                             "(…, heads, queries, keys)")
        options["bias"] = one_batch(as_bias(attn_mask).expand(*shape, keys))
    if dropout_p > 0:
        options |= {"dropout": dropout_p, "seed": drawn_seed(q.device)}
    q, k, v = (x.transpose(1, 2) for x in (q, k, v))
    y = functions["attention"](q, k, v, scale=scale or 0.0, **options).transpose(1, 2).reshape(*shape, value.shape[-1])
    return y.squeeze(0) if flat else y
