"""torch.nn.functional.linear on the library's product."""

import torch

from rooftile.torch._operators import functions, known

ACTIVATIONS = tuple(known["gemm"].numbers["activation"]["words"].split()) if "gemm" in known else ()
#: Functions whose derivative needs what they were given: with gradients they are a pass of their own, which keeps it.
SEPARATE = {"gelu": ("gelu", {}), "gelu_tanh": ("gelu", {"tanh": True}), "silu": ("silu", {})}
NAME = "rooftile.torch.linear"


def cast(*tensors):
    """Under autocast, as torch.nn.functional.linear: in autocast's dtype, but for f64."""
    kind = tensors[0].device.type
    if kind == "meta" or not torch.is_autocast_enabled(kind):  # meta has none
        return tensors
    dtype = torch.get_autocast_dtype(kind)
    return (t if t is None or t.dtype == torch.float64 or not t.is_floating_point() else t.to(dtype) for t in tensors)


def said(t):
    return "x".join(map(str, t.shape)) or "a scalar"


def drawn_seed(device):
    """A seed from PyTorch's generator of a device, in that device's memory: compiled and captured steps draw anew, checkpoints
    draw again."""
    return torch.randint(-2**63, 2**63 - 1, (1,), dtype=torch.int64, device=device)


def refuse_misfits(x, weight, bias):
    if weight.dim() != 2:
        raise ValueError(f"{NAME}: weight is {said(weight)}, must have 2 dimensions: outputs, then inputs")
    if x.dim() < 1 or x.shape[-1] != weight.shape[1]:
        raise ValueError(f"{NAME}: x is {said(x)}, its last size must be weight's second, {weight.shape[1]}")
    if bias is not None and (bias.dim() != 1 or bias.shape[0] != weight.shape[0]):
        raise ValueError(f"{NAME}: bias is {said(bias)}, must be {weight.shape[0]}, one for each row of weight")
    if weight.dtype != x.dtype:
        raise TypeError(f"{NAME}: weight is {weight.dtype}, must be {x.dtype} as x is; cast it, or call under torch.autocast")


def refuse_gate(gate, x, weight):
    shape = (*x.shape[:-1], weight.shape[0])
    if gate.shape != shape:
        raise ValueError(f"{NAME}: gate is {said(gate)}, must be as the result, {'x'.join(map(str, shape))}")
    if gate.dtype != x.dtype:
        raise TypeError(f"{NAME}: gate is {gate.dtype}, must be {x.dtype} as x is; cast it, or call under torch.autocast")


def refuse_inputs(layer, x):
    """Packed codes do not say whether a row has an odd number of them, nor does an order of x's columns how many x has."""
    if x.dim() < 1 or x.shape[-1] != layer.in_features:
        raise ValueError(f"{type(layer).__name__}: x is {said(x)}, its last size must be {layer.in_features}, the layer's in_features")


def as_rows(x):
    return x.flatten(0, -2) if x.dim() > 2 else x.unsqueeze(0) if x.dim() == 1 else x


def linear(x, weight, bias=None, activation="none", gate=None):
    """activation(x·weightᵀ + bias) for x of (…, inputs), weight of (outputs, inputs), bias of (outputs): torch.nn.functional.linear
    with a function behind it: "none", "relu", "gelu", "gelu_tanh", "silu", "sigmoid" or "tanh". gate: a tensor as the result, by
    which that is multiplied before it is rounded: linear(x, w, activation="silu", gate=linear(x, u)) is SwiGLU.

    f32, f16, bf16, and f64 with "none" and "relu"; sums are in f32 (f64 of f64), and the function is applied before the only
    rounding. Where a gradient is wanted of gelu, gelu_tanh or silu, the product is rounded and kept, and the function is a pass of
    its own, as in PyTorch; so is the gate. Under autocast the operands are cast as PyTorch's are. Gradients are products on views of
    the operands, and have gradients themselves (without gelu and silu)."""
    if activation not in ACTIVATIONS:
        raise ValueError(f"{NAME}: activation is {activation!r}, must be one of: {' '.join(ACTIVATIONS)}")
    x, weight, bias, gate = cast(x, weight, bias, gate)
    refuse_misfits(x, weight, bias)
    if gate is not None:
        refuse_gate(gate, x, weight)
    learns = torch.is_grad_enabled() and any(t is not None and t.requires_grad for t in (x, weight, bias, gate))
    passes = learns or torch.jit.is_tracing()  # one trace serves with gradients and without
    if gate is not None and passes:
        return linear(x, weight, bias, activation) * gate
    separate = SEPARATE.get(activation) if passes else None
    if separate and x.dtype == torch.float64:  # the library's sentence says what f64 has
        separate = None
    factor = {} if gate is None else {"c": as_rows(gate), "gate": True}
    y = functions["gemm"](as_rows(x), weight.mT, bias=bias, activation="none" if separate else activation, **factor)
    if separate:
        y = functions[separate[0]](y, **separate[1])
    return y.view(*x.shape[:-1], weight.shape[0])
