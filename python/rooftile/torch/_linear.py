"""torch.nn.functional.linear on the library's product."""

import torch

from rooftile.torch._operators import functions, known

ACTIVATIONS = tuple(known["gemm"].numbers["activation"]["words"].split()) if "gemm" in known else ()
#: Functions whose derivative needs what they were given: with gradients they are a pass of their own, which keeps it.
SEPARATE = {"gelu": ("gelu", {}), "gelu_tanh": ("gelu", {"tanh": True}), "silu": ("silu", {})}
NAME = "rooftile.torch.linear"


def cast(x, weight, bias):
    """Under autocast, as torch.nn.functional.linear: in autocast's dtype, but for f64."""
    kind = x.device.type
    if not torch.is_autocast_enabled(kind):
        return x, weight, bias
    dtype = torch.get_autocast_dtype(kind)
    return (t if t is None or t.dtype == torch.float64 or not t.is_floating_point() else t.to(dtype) for t in (x, weight, bias))


def said(t):
    return "x".join(map(str, t.shape)) or "a scalar"


def refuse_misfits(x, weight, bias):
    if weight.dim() != 2:
        raise ValueError(f"{NAME}: weight is {said(weight)}, must have 2 dimensions: outputs, then inputs")
    if x.dim() < 1 or x.shape[-1] != weight.shape[1]:
        raise ValueError(f"{NAME}: x is {said(x)}, its last size must be weight's second, {weight.shape[1]}")
    if bias is not None and (bias.dim() != 1 or bias.shape[0] != weight.shape[0]):
        raise ValueError(f"{NAME}: bias is {said(bias)}, must be {weight.shape[0]}, one for each row of weight")
    if weight.dtype != x.dtype:
        raise TypeError(f"{NAME}: weight is {weight.dtype}, must be {x.dtype} as x is; cast it, or call under torch.autocast")


def linear(x, weight, bias=None, activation="none"):
    """activation(x·weightᵀ + bias) for x of (…, inputs), weight of (outputs, inputs), bias of (outputs): torch.nn.functional.linear
    with a function behind it: "none", "relu", "gelu", "gelu_tanh", "silu", "sigmoid" or "tanh".

    f32, f16, bf16, and f64 with "none" and "relu"; sums are in f32 (f64 of f64), and the function is applied before the only
    rounding. Where a gradient is wanted of gelu, gelu_tanh or silu, the product is rounded and kept, and the function is a pass of
    its own, as in PyTorch. Under autocast the operands are cast as PyTorch's are. Gradients are products on views of the operands,
    and have gradients themselves (without gelu and silu)."""
    if activation not in ACTIVATIONS:
        raise ValueError(f"{NAME}: activation is {activation!r}, must be one of: {' '.join(ACTIVATIONS)}")
    x, weight, bias = cast(x, weight, bias)
    refuse_misfits(x, weight, bias)
    rows = x.flatten(0, -2) if x.dim() > 2 else x.unsqueeze(0) if x.dim() == 1 else x
    learns = torch.is_grad_enabled() and any(t is not None and t.requires_grad for t in (x, weight, bias))
    separate = SEPARATE.get(activation) if learns or torch.jit.is_tracing() else None
    if separate and x.dtype == torch.float64:  # the library's sentence says what f64 has
        separate = None
    y = functions["gemm"](rows, weight.mT, bias=bias, activation="none" if separate else activation)
    if separate:
        y = functions[separate[0]](y, **separate[1])
    return y.view(*x.shape[:-1], weight.shape[0])
