"""Attention that patch() takes over: torch.nn.MultiheadAttention, and the modules of transformers that choose a function by their
config's _attn_implementation. Of those the function is exchanged, not the config: masks and caches are made as before, and
what the library lacks runs on the function that the model had."""

import functools
import inspect
import sys
import typing

import torch
from torch.autograd import forward_ad

from rooftile.torch._attention import as_bias
from rooftile.torch._linear import cast
from rooftile.torch._operators import functions

DTYPES = (torch.float32, torch.float16, torch.bfloat16)
PREFIX = "rooftile_"


def are_plain(tensors):
    first = tensors[0]
    return (forward_ad._current_level < 0 and first.dtype in DTYPES and first.device.type in ("cpu", "cuda", "meta") and
            all(isinstance(t, torch.Tensor) and t.dtype == first.dtype and t.layout == torch.strided and not t.is_nested for t in tensors))


def guarded_multi_head(own, looks):
    """torch.nn.MultiheadAttention's forward: without weights and dropout on the kernels."""
    @functools.wraps(own.forward)
    def forward(self, query, key, value, key_padding_mask=None, need_weights=True, attn_mask=None, average_attn_weights=True,
                is_causal=False):
        runs = (not need_weights and not (self.training and self.dropout > 0) and are_plain((query, key, value)) and
                self.bias_k is None and not self.add_zero_attn and 0 < self.head_dim <= 256 and query.dim() in (2, 3) and
                not (attn_mask is not None and attn_mask.requires_grad) and
                {p.dtype for p in self._parameters.values() if p is not None} <= {query.dtype})
        words = {"key_padding_mask": key_padding_mask, "need_weights": need_weights, "attn_mask": attn_mask,
                 "average_attn_weights": average_attn_weights, "is_causal": is_causal}
        return looks.forward(self, query, key, value, **words) if runs else own.forward(self, query, key, value, **words)

    return {"forward": forward}


# ---- transformers


class Config:
    """A module's config, but for the name of the function that it takes."""

    def __init__(self, config):
        object.__setattr__(self, "rooftile_config", config)

    def __getattr__(self, name):
        return getattr(object.__getattribute__(self, "rooftile_config"), name)

    def __setattr__(self, name, value):
        setattr(self.rooftile_config, name, value)

    @property
    def _attn_implementation(self):
        name = self.rooftile_config._attn_implementation
        return PREFIX + name if name in ("eager", "sdpa") else name


def function_of(own):
    """The forward of a class, and whether it chooses its attention by transformers' interface."""
    forward = inspect.unwrap(own.forward)
    code = getattr(forward, "__code__", None)
    chooses = code is not None and {"ALL_ATTENTION_FUNCTIONS", "eager_attention_forward", "config"} <= set(code.co_names)
    return forward, chooses


def former(module, implementation):
    """The function that a module has without rooftile."""
    own = getattr(type(module), "rooftile_own", type(module))
    names = function_of(own)[0].__globals__
    return names["eager_attention_forward"] if implementation == "eager" else names["ALL_ATTENTION_FUNCTIONS"][implementation]


def reads(function):
    """Names of what a function may take beside its tensors."""
    code = inspect.unwrap(function).__code__
    return {*inspect.signature(function).parameters, *(c for c in code.co_consts if isinstance(c, str))}


def wants_weights(words):
    """Whether the model's caller collects the attention's weights."""
    if words.get("output_attentions"):
        return True
    capturing = sys.modules.get("transformers.utils.output_capturing")
    collector = capturing._active_collector.get() if hasattr(capturing, "_active_collector") else None
    return collector is not None and any("attentions" in str(key) for key in collector)


def attention(module, query, key, value, mask, scaling, softcap=None, sink=None, causal=False):
    """transformers' tensors, (batch, heads, length, channels) to (batch, length, heads, channels); None: not for the library."""
    query, key, value, mask, sink = cast(query, key, value, mask, sink)
    tensors = (query, key, value)
    if not are_plain(tensors) or any(t.dim() != 4 or not 0 < t.shape[3] <= 256 for t in tensors):
        return None
    groups = getattr(module, "num_key_value_groups", 1)
    if query.shape[0] != key.shape[0] or key.shape[:3] != value.shape[:3] or query.shape[1] != groups * key.shape[1]:
        return None
    if scaling is not None and not scaling > 0 or softcap is not None and not softcap > 0:
        return None
    if mask is not None:
        shape = (*query.shape[:3], key.shape[2])
        if mask.dim() != 4 or mask.requires_grad or any(a not in (1, b) for a, b in zip(mask.shape, shape)):
            return None
        mask = as_bias(mask)
        mask = (mask if mask.dtype in (torch.float32, query.dtype) else mask.to(query.dtype)).expand(shape)
    q, k, v = (t.transpose(1, 2) for t in tensors)
    if sink is not None and sink.dtype not in (torch.float32, query.dtype):
        sink = sink.to(query.dtype)
    return functions["attention"](q, k, v, bias=mask, sink=sink, causal=causal, scale=scaling or 0.0, softcap=softcap or 0.0)


class Form(typing.NamedTuple):
    """What a trial said of a file's eager function."""

    reads: frozenset  # words beside the known ones that may change its result
    scales: bool  # without a scaling it takes 1/√D
    softcap: str  # "taken", "ignored", or "refused"
    sink: str  # where its sinks are: "none", "module" or "s_aux"; "unknown": it is not taken over


def as_eager(module, query, key, value, mask, scaling, words, form):
    """As the eager function of its file; None: not for the library."""
    given = {name for name, x in words.items() if x is not None}
    if form.sink == "unknown" or given & form.reads or (scaling is None and not form.scales) or ("softcap" in given and form.softcap == "refused"):
        return None
    sink = {"none": None, "module": getattr(module, "sinks", None), "s_aux": words.get("s_aux")}[form.sink]
    if (form.sink != "none" and sink is None) or (mask is not None and mask.dtype == torch.bool):
        return None
    return attention(module, query, key, value, mask, scaling, words.get("softcap") if form.softcap == "taken" else None, sink)


def as_sdpa(module, query, key, value, mask, scaling, words):
    """As transformers' sdpa_attention_forward; None: not for the library."""
    if any(words.get(name) is not None for name in ("softcap", "position_bias")):
        return None
    causal = words.get("is_causal")
    causal = getattr(module, "is_causal", True) if causal is None else causal
    queries, keys = query.shape[2], key.shape[2]
    causal = queries > 1 and mask is None and causal
    if causal and queries > keys:
        return None
    if causal and queries < keys:  # an empty cache of fixed size
        key, value = key[:, :, :queries], value[:, :, :queries]
    return attention(module, query, key, value, mask, scaling, causal=bool(causal))


def interface(implementation):
    """What takes the place of a function of transformers', for modules that patch() changed."""
    def rooftile_attention(module, query, key, value, attention_mask, dropout=0.0, scaling=None, **words):
        form = getattr(type(module), "rooftile_form", None)
        result = None
        if form is not None and dropout == 0 and not wants_weights(words):
            operands = (module, query, key, value, attention_mask, scaling, words)
            result = as_eager(*operands, form) if implementation == "eager" else as_sdpa(*operands)
        if result is not None:
            return result, None
        return former(module, implementation)(module, query, key, value, attention_mask, dropout=dropout, scaling=scaling, **words)

    return rooftile_attention


def register():
    """Both functions, where transformers is loaded."""
    known = sys.modules["transformers.modeling_utils"].ALL_ATTENTION_FUNCTIONS
    for name in ("eager", "sdpa"):
        if PREFIX + name not in known:
            known.register(PREFIX + name, interface(name))


class AttentionByInterface:
    """A module of transformers that chooses its attention by its config."""

    @staticmethod
    def overrides(own, looks):
        register()
        return {"config": property(lambda self: Config(self.__dict__["config"]),
                                   lambda self, config: self.__dict__.__setitem__("config", config))}

    @staticmethod
    def forms(module):
        """Whether it is one."""
        config = module.__dict__.get("config")
        return config is not None and hasattr(config, "_attn_implementation") and function_of(type(module))[1]

    @staticmethod
    def trial(module):
        """(form, ""), or (None, why not)."""
        implementation = module.__dict__["config"]._attn_implementation
        if implementation not in ("eager", "sdpa"):
            return None, f"its attention is {implementation}, neither eager nor sdpa"
        if implementation == "sdpa" and former(module, "sdpa").__module__ != "transformers.integrations.sdpa_attention":
            return None, "its sdpa is another one than transformers'"
        if channels_of(module) > 256:
            return None, f"its heads have {channels_of(module)} channels, more than 256"
        form, reason = None, "a trial of its attention gave other numbers than rooftile's"
        try:
            form = trial_of_eager(module)
        except Exception as error:  # of a class that nobody here knows
            reason = f"a trial of its attention failed: {error}"
        if form is None and implementation == "sdpa":  # which needs no trial
            form = Form(frozenset(), False, "refused", "unknown")
        return (form, "") if form else (None, reason)


def channels_of(module):
    """Of a head; a small number where the module does not say so."""
    sizes = (getattr(module, name, None) for name in ("head_dim", "attention_head_size"))
    return next((n for n in sizes if isinstance(n, int)), 16)


KNOWN = {"module", "query", "key", "value", "attention_mask", "scaling", "dropout", "softcap", "s_aux", "kwargs", "output_attentions"}
HUGE = torch.finfo(torch.float32).min


def trial_of_eager(module):
    """The form of a module's eager function, by random inputs; None: it computes something else."""
    function = former(module, "eager")
    sinks, groups = getattr(module, "sinks", None), getattr(module, "num_key_value_groups", 1)
    device = next((p.device for p in module.parameters()), torch.device("cpu"))
    device = torch.device("cpu") if device.type == "meta" else device
    shared = sinks.numel() // groups if isinstance(sinks, torch.Tensor) else 2
    width = channels_of(module)
    make = functools.partial(torch.randn, generator=torch.Generator().manual_seed(1))
    q, k, v = (make(2, heads, n, width).to(device) for heads, n in ((shared * groups, 5), (shared, 7), (shared, 7)))
    mask = torch.where(make(2, 1, 5, 7) > 0.7, HUGE, 0.0).to(device)
    s_aux = make(shared * groups).to(device)

    def run(q, k, v, mask, **words):
        return function(module, q, k, v, mask, dropout=0.0, **words)[0]

    def ours(q, k, v, mask, scaling, sink=None, softcap=None):
        return attention(module, q, k, v, mask, scaling, softcap, None if sink is None else sink.detach().to(q.device))

    def error(a, b):
        if a.shape != b.shape or a.dtype != b.dtype:
            return float("inf")
        e = (a.double() - b.double()).abs().max() / b.double().abs().max().clamp_min(1e-30)
        return e.item() if e.isfinite() else float("inf")

    kinds = {"none": {}, "module": {"sink": sinks}, "s_aux": {"sink": s_aux}}
    kinds = {n: w for n, w in kinds.items() if n != "module" or isinstance(sinks, torch.Tensor)}
    with torch.no_grad():
        expected = run(q, k, v, mask, scaling=0.3, s_aux=s_aux)
        sink = min(kinds, key=lambda n: error(ours(q, k, v, mask, 0.3, **kinds[n]), expected))
        given = {"s_aux": s_aux} if sink == "s_aux" else {}
        for x, m in ((q, mask), (40 * q, mask), (q, None), (q, mask.double().clamp(-2).float()), (q, torch.full_like(mask, HUGE))):
            if error(ours(x, k, v, m, 0.3, **kinds[sink]), run(x, k, v, m, scaling=0.3, **given)) > 1e-5:
                return None
        softcap, scales = "refused", False
        try:
            capped = run(4 * q, k, v, mask, scaling=0.3, softcap=1.5, **given)
            for word, cap in (("taken", 1.5), ("ignored", None)):
                if error(ours(4 * q, k, v, mask, 0.3, softcap=cap, **kinds[sink]), capped) <= 1e-5:
                    softcap = word
        except Exception:
            pass
        try:
            scales = error(ours(q, k, v, mask, None, **kinds[sink]), run(q, k, v, mask, scaling=None, **given)) <= 1e-5
        except Exception:
            pass
    return Form(frozenset(reads(function) - KNOWN), scales, softcap, sink)
