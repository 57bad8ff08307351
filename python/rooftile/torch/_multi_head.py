"""Multi-head attention as a module: one product for queries, keys and values, then RoPE, attention and the product back."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from rooftile.torch._attention import as_bias
from rooftile.torch._linear import drawn_seed, linear, said
from rooftile.torch._operators import functions

NAME = "rooftile.torch.nn.MultiHeadAttention"


class KVCache:
    """Keys and values of up to `capacity` tokens of each sequence, for MultiHeadAttention's cache=. `lengths` says how many each
    sequence has (int32, on the device), `used` how many places are taken at most."""

    def __init__(self, batch: int, capacity: int, num_key_value_heads: int, head_dim: int, device: Any = None,
                 dtype: torch.dtype | None = None) -> None:
        shape = (batch, capacity, num_key_value_heads, head_dim)
        self.k, self.v = (torch.empty(shape, device=device, dtype=dtype) for _ in range(2))
        self.lengths = torch.zeros(batch, dtype=torch.int32, device=device)
        self.table = torch.arange(batch, dtype=torch.int32, device=device)[:, None]  # a page for each sequence
        self.used = 0

    def reset(self) -> None:
        """Empty, in the same memory."""
        self.lengths.zero_()
        self.used = 0

    def positions(self, tokens: int, padding: Tensor | None = None) -> Tensor:
        """Where the next tokens of each sequence stand, (batch, tokens) of i64. padding is True of those before a sequence's
        first: these have numbers below its length."""
        count = tokens if padding is None else tokens - padding.sum(1, keepdim=True)
        return self.lengths[:, None] + torch.arange(tokens, device=self.lengths.device) + (count - tokens)

    def append(self, k: Tensor, v: Tensor, padding: Tensor | None = None) -> None:
        """Keys and values of new tokens, (batch, tokens, heads, channels), behind what is there."""
        batch, capacity, tokens = *self.k.shape[:2], k.shape[1]
        if k.shape != (batch, tokens, *self.k.shape[2:]):
            raise ValueError(f"rooftile.torch.nn.KVCache: keys are {said(k)}, must be {batch}x(tokens)x{said(self.k[0, 0])} as the "
                             "cache is")
        if self.used + tokens > capacity:
            raise ValueError(f"rooftile.torch.nn.KVCache: {self.used} tokens and {tokens} new ones exceed its capacity, {capacity}; "
                             "make a larger one, or reset()")
        positions = self.positions(tokens, padding)
        slots = positions + capacity * self.table
        if padding is not None:
            slots = slots.masked_fill(padding, -1)
        functions["kv_cache_append"](k, v, slots, self.k, self.v)
        self.lengths += tokens if padding is None else (~padding).sum(1, dtype=torch.int32)
        self.used += tokens


def refuse_sizes(embed_dim, num_heads, groups, head_dim, window, mixed):
    if groups < 1 or num_heads % groups:
        raise ValueError(f"{NAME}: num_key_value_heads is {groups}, must divide num_heads, {num_heads}")
    if head_dim is None and embed_dim % num_heads:
        raise ValueError(f"{NAME}: embed_dim is {embed_dim}, must be a multiple of num_heads, {num_heads}; or give head_dim")
    if window is not None and window < 1:
        raise ValueError(f"{NAME}: window is {window}, must be 1 or more")
    if mixed:
        raise ValueError(f"{NAME}: kdim or vdim is given beside num_key_value_heads or head_dim; must be None")


def refuse_inputs(inputs, widths):
    for name, x, width in zip(("query", "key", "value"), inputs, widths):
        if x.dim() not in (2, 3) or x.dim() != inputs[0].dim() or x.shape[-1] != width:
            raise ValueError(f"{NAME}: {name} is {said(x)}, must have 2 or 3 dimensions as query has, the last of {width}")


class MultiHeadAttention(torch.nn.MultiheadAttention):
    """torch.nn.MultiheadAttention on the library's product and attention, with its parameters and its state_dict.

    Beyond it: num_key_value_heads below num_heads (queries share keys), a head_dim of its own, RoPE (rope_base or inv_freq,
    rope_interleaved, rotary_dim), an RMSNorm of each head's queries and keys (qk_norm, its eps), causal, a window of so many
    tokens including its own, a softcap, a sink for each head, and a scale. forward(x) is self-attention without weights.

    Weights, f64 and heads above 256 channels are computed with the scores in memory, as PyTorch does."""

    num_key_value_heads = 0  # of PyTorch's own, which patch() exchanges: as many as num_heads
    rope_base: float | None = None
    rope_interleaved, rotary_dim, attention_factor = False, 0, 1.0
    causal = False
    window: int | None = None
    softcap: float | None = None
    scale: float | None = None

    def __init__(self, embed_dim: int, num_heads: int, dropout: float = 0.0, bias: bool = True, add_bias_kv: bool = False,
                 add_zero_attn: bool = False, kdim: int | None = None, vdim: int | None = None, batch_first: bool = False,
                 device: Any = None, dtype: torch.dtype | None = None, *, num_key_value_heads: int | None = None,
                 head_dim: int | None = None, rope_base: float | None = None, inv_freq: Tensor | None = None,
                 rope_interleaved: bool = False, rotary_dim: int = 0, attention_factor: float = 1.0, qk_norm: bool = False,
                 eps: float = 1e-6, causal: bool = False, window: int | None = None, softcap: float | None = None,
                 sinks: bool = False, scale: float | None = None) -> None:
        groups = num_heads if num_key_value_heads is None else num_key_value_heads
        own_sizes = groups != num_heads or head_dim not in (None, embed_dim // num_heads)
        refuse_sizes(embed_dim, num_heads, groups, head_dim, window, own_sizes and (kdim, vdim) != (None, None))
        if add_bias_kv or add_zero_attn:
            raise ValueError(f"{NAME}: add_bias_kv and add_zero_attn must be False; torch.nn.MultiheadAttention has them")
        words = {"device": device, "dtype": dtype}
        super().__init__(num_heads if own_sizes else embed_dim, num_heads, dropout, bias, False, False, kdim, vdim, batch_first, **words)
        self.num_key_value_heads = groups
        if own_sizes:
            self.head_dim = embed_dim // num_heads if head_dim is None else head_dim
            self.embed_dim = self.kdim = self.vdim = embed_dim
            rows = (num_heads + 2 * groups) * self.head_dim
            self.in_proj_weight = torch.nn.Parameter(torch.empty(rows, embed_dim, **words))
            self.in_proj_bias = torch.nn.Parameter(torch.empty(rows, **words)) if bias else None
            self.out_proj = type(self.out_proj)(num_heads * self.head_dim, embed_dim, bias=bias, **words)
            self._reset_parameters()
        self.rope_base, self.rope_interleaved, self.rotary_dim = rope_base, rope_interleaved, rotary_dim
        self.attention_factor = attention_factor
        self.causal, self.window, self.softcap, self.scale = causal, window, softcap, scale
        if inv_freq is not None:
            self.register_buffer("inv_freq", inv_freq.to(device, torch.float32), persistent=False)
        if qk_norm:
            from rooftile.torch import nn

            self.q_norm, self.k_norm = (nn.RMSNorm(self.head_dim, eps, **words) for _ in range(2))
        if sinks:
            self.sinks = torch.nn.Parameter(torch.zeros(num_heads, **words))
        if own_sizes or self.turns or qk_norm or sinks or any(x is not None for x in (window, softcap, scale)) or causal:
            self._qkv_same_embed_dim = False  # torch.nn's encoder layers must not compute it by themselves

    @property
    def turns(self):
        return self.rope_base is not None or "inv_freq" in self._buffers

    def forward(self, query: Tensor, key: Tensor | None = None, value: Tensor | None = None,
                key_padding_mask: Tensor | None = None, need_weights: bool | None = None, attn_mask: Tensor | None = None,
                average_attn_weights: bool = True, is_causal: bool = False, *, positions: Tensor | None = None,
                cache: KVCache | None = None) -> tuple[Tensor, Tensor | None]:
        """torch.nn.MultiheadAttention's; (result, weights or None). need_weights: where key is given True, as there.

        positions: (batch, length) of each token, for RoPE. cache: the tokens are the next ones of its sequences, and each sees
        all up to itself; key_padding_mask is then True of tokens before a sequence's first."""
        needs = key is not None if need_weights is None else need_weights
        key = query if key is None else key
        value = key if value is None else value
        inputs, single = [query, key, value], query.dim() == 2
        refuse_inputs(inputs, (self.embed_dim, self.kdim, self.vdim))
        q, k, v = (x.unflatten(-1, (-1, self.head_dim)) for x in self.products(*inputs))
        if single:
            q, k, v = (x.unsqueeze(0) for x in (q, k, v))
            key_padding_mask = None if key_padding_mask is None else key_padding_mask.unsqueeze(0)
        elif not self.batch_first:
            q, k, v = (x.transpose(0, 1) for x in (q, k, v))
        if cache is not None:
            positions = self.positions_in(cache, q, k, positions, key_padding_mask, attn_mask, needs, is_causal)
        if "q_norm" in self._modules:
            q, k = self.q_norm(q), self.k_norm(k)
        if self.turns:
            q, k = self.turned(q, k, positions)
        weights = None
        if cache is not None:
            cache.append(k, v, key_padding_mask)
            y = functions["paged_attention"](q, cache.k, cache.v, cache.table, cache.lengths, sink=self._parameters.get("sinks"),
                                             window_left=(self.window or 0) - 1, softcap=self.softcap or 0.0, scale=self.scale or 0.0)
        else:
            y, weights = self.attend(q, k, v, key_padding_mask, attn_mask, is_causal, needs)
        y = y.squeeze(0) if single else y if self.batch_first else y.transpose(0, 1)
        y = linear(y.flatten(-2), self.out_proj.weight, self.out_proj.bias)
        if weights is None or not needs:
            return y, None
        weights = weights.mean(1) if average_attn_weights else weights
        return y, weights.squeeze(0) if single else weights

    def products(self, query, key, value):
        """Queries, keys and values: one product where they come of one tensor."""
        width, shared = self.num_heads * self.head_dim, (self.num_key_value_heads or self.num_heads) * self.head_dim
        sizes, bias = (width, shared, shared), self.in_proj_bias
        if self.in_proj_weight is None:
            weights = (self.q_proj_weight, self.k_proj_weight, self.v_proj_weight)
        elif query is key and key is value:
            return linear(query, self.in_proj_weight, bias).split(sizes, -1)
        else:
            weights = self.in_proj_weight.split(sizes)
        biases = (None,) * 3 if bias is None else bias.split(sizes)
        return [linear(*each) for each in zip((query, key, value), weights, biases)]

    def turned(self, q, k, positions):
        if q.shape[1] != k.shape[1]:
            raise ValueError(f"{NAME}: query has {q.shape[1]} tokens and key {k.shape[1]}; with RoPE they must have as many")
        frequencies = self._buffers.get("inv_freq")
        base = {} if self.rope_base is None else {"base": self.rope_base}
        return functions["rope"](q, k, positions=positions, inv_freq=frequencies, interleaved=self.rope_interleaved,
                                 rotary=self.rotary_dim, attention_factor=self.attention_factor, **base)

    def positions_in(self, cache, q, k, positions, padding, mask, needs, is_causal):
        """Where the tokens stand behind the cache's; refuses what a cache rules out."""
        wrong = ("attn_mask is given" if mask is not None else "need_weights is True" if needs else
                 "positions are given" if positions is not None else "key has other tokens than query" if q.shape[1] != k.shape[1] else
                 "the module is not causal" if not (self.causal or is_causal) else
                 "its dropout is above 0 in training" if self.training and self.dropout else "")
        if wrong:
            raise ValueError(f"{NAME}: with a cache each token sees all up to itself, and {wrong}; call it without")
        return cache.positions(q.shape[1], padding)

    def attend(self, q, k, v, padding, mask, is_causal, needs):
        """(y, weights or None)."""
        queries, keys, causal = q.shape[1], k.shape[1], self.causal or (is_causal and mask is None)
        if is_causal and padding is None and not needs:  # PyTorch's hint: the mask is the triangle
            mask, causal = None, True
        if self.window and queries != keys:
            raise ValueError(f"{NAME}: query has {queries} tokens and key {keys}; with a window they must have as many")
        bias = self.bias_of(q, k, padding, mask)
        lacks = q.dtype == torch.float64 or not 0 < self.head_dim <= 256 or (bias is not None and bias.requires_grad)
        if needs or lacks:
            return self.by_scores(q, k, v, bias, causal)
        left = (self.window or 0) - 1
        if causal and queries < keys:  # the triangle begins in the upper left corner
            k, v, bias = k[:, :queries], v[:, :queries], None if bias is None else bias[..., :queries]
        right = max(queries - keys, 0) if causal and queries > keys else -1 if causal else left
        drops = {"dropout": self.dropout, "seed": drawn_seed(q.device)} if self.training and self.dropout > 0 else {}
        y = functions["attention"](q, k, v, bias=bias, sink=self._parameters.get("sinks"), causal=causal and queries <= keys,
                                   window_left=left, window_right=right, softcap=self.softcap or 0.0, scale=self.scale or 0.0, **drops)
        return y, None

    def bias_of(self, q, k, padding, mask):
        """Both masks as one bias, (batch, heads, queries, keys)."""
        shape = (q.shape[0], self.num_heads, q.shape[1], k.shape[1])
        if mask is not None and mask.dim() == 3:
            mask = mask.view(-1, self.num_heads, *mask.shape[1:])
        masks = (mask, None if padding is None else padding[:, None, None])  # torch.nn's are True where nothing is seen
        given = [as_bias(x, seen=False) for x in masks if x is not None]
        if not given:
            return None
        bias = given[0] + given[1] if len(given) > 1 else given[0]
        if bias.dim() != 2 and bias.dim() != 4 or any(a not in (1, b) for a, b in zip(bias.shape[::-1], shape[::-1])):
            raise ValueError(f"{NAME}: masks are {said(bias)} together, must broadcast to {'x'.join(map(str, shape))}")
        return (bias if bias.dtype in (torch.float32, q.dtype) else bias.to(q.dtype)).expand(shape)

    def by_scores(self, q, k, v, bias, causal):
        """With the scores in memory: for weights, and what the library's attention lacks."""
        repeat = self.num_heads // k.shape[2]
        q, k, v = (x.transpose(1, 2) for x in (q, k, v))
        k, v = (x.repeat_interleave(repeat, 1) if repeat > 1 else x for x in (k, v))
        x = q @ k.mT * (self.scale or self.head_dim ** -0.5)
        x = x if not self.softcap else self.softcap * (x / self.softcap).tanh()
        x = x if bias is None else (x + bias).to(x.dtype)
        if causal or self.window:
            ahead = torch.arange(k.shape[2], device=q.device) - torch.arange(q.shape[2], device=q.device)[:, None]
            unseen = ahead > 0 if causal else torch.zeros_like(ahead, dtype=torch.bool)
            unseen = unseen | (ahead.abs() >= self.window) if self.window else unseen
            x = x.masked_fill(unseen, -torch.inf)
        sinks = self._parameters.get("sinks")
        if sinks is not None:
            x = torch.cat([x, sinks.to(x.dtype)[:, None, None].expand(*x.shape[:3], 1)], -1)
        nothing = (x == -torch.inf).all(-1, keepdim=True)
        w = x.masked_fill(nothing, 0).softmax(-1).masked_fill(nothing, 0)[..., :k.shape[2]]
        w = torch.nn.functional.dropout(w, self.dropout, self.training)
        return (w @ v).transpose(1, 2), w

    def extra_repr(self):
        said = f"{self.embed_dim}, {self.num_heads}, head_dim={self.head_dim}, batch_first={self.batch_first}"
        own = {"num_key_value_heads": 0, "rope_base": None, "causal": False, "window": None, "softcap": None, "scale": None}
        return said + "".join(f", {n}={value}" for n, none in own.items() if (value := getattr(self, n)) != none)
