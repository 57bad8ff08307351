"""torch.nn.functional.scaled_dot_product_attention on the library's attention."""

from typing import Optional

import torch
from torch import Tensor

from rooftile.torch._operators import functions


def scaled_dot_product_attention(query: Tensor, key: Tensor, value: Tensor, attn_mask: Optional[Tensor] = None,
                                 dropout_p: float = 0.0, is_causal: bool = False, scale: Optional[float] = None,
                                 enable_gqa: bool = False) -> Tensor:
    """As torch.nn.functional's: (…, heads, length, channels), is_causal's diagonal from the upper left corner. A query that sees
    no key gives 0. Of dropout and of a mask's gradient it says that it has none."""
    name = "rooftile.torch.scaled_dot_product_attention"
    if dropout_p != 0:
        raise NotImplementedError(f"{name}: dropout_p is {dropout_p}, must be 0: the library's attention has no dropout")
    if attn_mask is not None and attn_mask.requires_grad:
        raise NotImplementedError(f"{name}: attn_mask needs a gradient, which the library does not compute; detach it")
    if attn_mask is not None and is_causal:
        raise ValueError(f"{name}: attn_mask and is_causal are both given; add the triangle to the mask")
    if scale is not None and not scale > 0:
        raise ValueError(f"{name}: scale is {scale}, must be above 0")
    shape = query.shape
    if query.dim() < 3 or key.dim() != query.dim() or value.dim() != query.dim():
        raise ValueError(f"{name}: query, key and value have {query.dim()}, {key.dim()} and {value.dim()} dimensions, must all have "
                         "as many, 3 or more: (…, heads, length, channels)")
    # One batch, then heads, length, channels; without heads there is one.
    q, k, v = (x.unsqueeze(1) if x.dim() == 3 else x.flatten(0, -4) for x in (query, key, value))
    if q.shape[1] != k.shape[1] and not enable_gqa:
        raise ValueError(f"{name}: query has {q.shape[1]} heads and key {k.shape[1]}; enable_gqa=True shares them")
    queries, keys, options = q.shape[2], k.shape[2], {}
    if is_causal and queries < keys:  # the keys from there on are seen by none
        k, v = k[:, :, :queries], v[:, :, :queries]
    if is_causal:  # the library's diagonal ends in the lower right corner
        options = {"window_right": max(queries - keys, 0)}
    if attn_mask is not None:
        if attn_mask.dtype == torch.bool:
            attn_mask = torch.zeros(attn_mask.shape, device=q.device).masked_fill_(~attn_mask, -torch.inf)
        mask = attn_mask.expand(*shape[:-1], keys)
        options["bias"] = mask.unsqueeze(1) if mask.dim() == 3 else mask.flatten(0, -4) if mask.dim() > 4 else mask
    q, k, v = (x.transpose(1, 2) for x in (q, k, v))
    y = functions["attention"](q, k, v, scale=scale or 0.0, **options)
    return y.transpose(1, 2).reshape(*shape[:-1], value.shape[-1])
