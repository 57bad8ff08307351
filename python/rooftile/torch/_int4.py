"""A product with a frozen weight of 4-bit groups, and its gradient; and the layouts of GPTQ's and AWQ's checkpoints."""

import torch

from rooftile import _functions
from rooftile.torch._frozen import operators
from rooftile.torch._linear import as_rows, cast, said
from rooftile.torch._operators import known

NAME = "rooftile.torch.linear_int4"
SCHEMAS = {
    "linear_int4": "(Tensor x, Tensor packed, Tensor scales, Tensor? zeros, Tensor? bias, int group) -> Tensor",
    "int4_weight": "(Tensor packed, Tensor scales, Tensor? zeros, int in_features, int group, ScalarType dtype) -> Tensor",
}


def product_shape(x, packed, scales, zeros, bias, group):
    return x.new_empty((*x.shape[:-1], packed.shape[0]))


def product(x, packed, scales, zeros, bias, group):
    y = product_shape(x, packed, scales, zeros, bias, group)
    _functions.below_gradients["gemm_int4"](x, packed, scales, zeros=zeros, bias=bias, group=group, out=y)
    return y


def weight_shape(packed, scales, zeros, in_features, group, dtype):
    return scales.new_empty((packed.shape[0], in_features), dtype=dtype)


def weight(packed, scales, zeros, in_features, group, dtype):
    w = weight_shape(packed, scales, zeros, in_features, group, dtype)
    _functions.below_gradients["dequantize_int4"](packed, scales, zeros=zeros, group=group, out=w)
    return w


def remember(ctx, inputs, output):
    x, packed, scales, zeros, bias, ctx.group = inputs
    ctx.bias = None if bias is None else bias.dtype
    ctx.save_for_backward(packed, scales, zeros)
    ctx.in_features = x.shape[-1]


def gradient(ctx, dy):
    packed, scales, zeros = ctx.saved_tensors
    rows, dx, dbias = as_rows(dy), None, None
    if ctx.needs_input_grad[0]:
        w = torch.ops.rooftile.int4_weight(packed, scales, zeros, ctx.in_features, ctx.group, dy.dtype)
        dx = known["gemm"].product(rows, w).view(*dy.shape[:-1], ctx.in_features)
    if ctx.needs_input_grad[4]:
        dbias = rows.sum(0, dtype=torch.float32).to(ctx.bias)
    return dx, None, None, None, dbias, None


# Without the kernels, in a build of other functions, there are no operators either.
if {"gemm_int4", "dequantize_int4"} <= set(known):
    differentiable_product = operators({"linear_int4": (product, product_shape), "int4_weight": (weight, weight_shape)}, SCHEMAS, gradient, remember)


def refuse_misfits(x, packed, scales, zeros, group):
    if packed.dim() != 2 or x.dim() < 1 or packed.shape[1] != (x.shape[-1] + 1) // 2:
        raise ValueError(f"{NAME}: packed is {said(packed)} and x is {said(x)}, packed must be outputs times half of x's last size")
    if group < 2 or group % 2:
        raise ValueError(f"{NAME}: group is {group}, must be an even number from 2 up")
    expected = (packed.shape[0], -(-x.shape[-1] // group))
    for name, its in (("scales", scales), ("zeros", zeros)):
        if its is not None and its.shape != expected:
            raise ValueError(f"{NAME}: {name} are {said(its)}, must be {expected[0]}x{expected[1]}: one for {group} of x's last size, "
                             f"{x.shape[-1]}")


def linear_int4(x, packed, scales, zeros=None, bias=None, group=128):
    """x·Wᵀ + bias for a weight W of (outputs, x's last size) in groups of 4-bit codes, as quantize_int4 packs it:
    torch.nn.functional.linear without W in memory. Bits are those of linear on the weight as dequantize_int4 gives it in x's dtype.

    x: (…, inputs), f32, f16 or bf16; under autocast in its dtype. packed: (outputs, ⌈inputs/2⌉) of uint8; scales:
    (outputs, ⌈inputs/group⌉), f32, f16 or bf16; zeros: as scales, uint8; None: 8 everywhere. W is frozen: gradients are x's, for
    which W is dequantised into memory for as long as one product takes, and bias's."""
    x, bias = cast(x, bias)
    refuse_misfits(x, packed, scales, zeros, group)
    y = differentiable_product(as_rows(x), packed, scales, zeros, bias, group)
    return y.view(*x.shape[:-1], packed.shape[0])


# ---- checkpoints

#: AWQ's word of eight: which column each nibble holds; and in which nibble each column is.
AWQ_ORDER = (0, 2, 4, 6, 1, 3, 5, 7)
AWQ_PLACES = tuple(AWQ_ORDER.index(column) for column in range(8))


def nibbles(words, places=tuple(range(8))):
    """(rows, columns) of int32 to (rows, 8·columns) of uint8: the nibbles, lowest first, or in the order of `places`."""
    shifts = torch.tensor([4 * place for place in places], dtype=torch.int32, device=words.device)
    return (words.unsqueeze(-1) >> shifts & 15).to(torch.uint8).flatten(1)


def packed_codes(codes):
    """(outputs, inputs), inputs even, of 0 to 15, two to a byte, the first in the low nibble."""
    return codes[:, ::2] | codes[:, 1::2] << 4


def turned(x):
    """A matrix's transpose in memory of its own."""
    return x.detach().mT.clone(memory_format=torch.contiguous_format)


def checked_group(name, inputs, outputs, qweight, expected, qzeros, scales, group):
    """Elements per group of a checkpoint whose tensors fit together."""
    for tensor, what in ((qweight, "qweight"), (qzeros, "qzeros")):
        if tensor.dtype != torch.int32 or tensor.dim() != 2:
            raise TypeError(f"{name}: {what} is {said(tensor)} of {tensor.dtype}, must be of 2 dimensions and int32")
    if scales.dtype not in (torch.float32, torch.float16, torch.bfloat16):
        raise TypeError(f"{name}: scales are {said(scales)} of {scales.dtype}, must be float32, float16 or bfloat16")
    groups = scales.shape[0] if scales.dim() == 2 else 0
    if scales.shape != (groups, outputs) or qzeros.shape != (groups, outputs // 8) or outputs % 8:
        raise ValueError(f"{name}: qweight is {said(qweight)}, {expected} of {inputs} inputs and {outputs} outputs, a multiple of 8; scales "
                         f"are {said(scales)}, must be groups times outputs, and qzeros {said(qzeros)}, groups times outputs/8")
    if group is None and groups and inputs % groups == 0:
        group = inputs // groups
    if group in (-1, None) and groups == 1:
        group = inputs
    if group is None or group < 1 or -(-inputs // group) != groups:
        raise ValueError(f"{name}: group is {group}, scales have {groups} groups of {inputs} inputs; give the group's size, as the "
                         "checkpoint's config has it")
    return group


def of_gptq(qweight, qzeros, scales, g_idx, group, v2):
    """packed, scales, zeros, the group's size, and in which order x's columns are to come; None: in theirs."""
    name = "LinearInt4.from_gptq"
    inputs, outputs = qweight.shape[0] * 8, qweight.shape[-1]
    group = checked_group(name, inputs, outputs, qweight, "inputs/8 times outputs", qzeros, scales, group)
    zeros = nibbles(qzeros) + (0 if v2 else 1)
    columns = None
    packed = turned(qweight).view(torch.uint8)
    if g_idx is not None:
        if g_idx.is_floating_point():
            raise TypeError(f"{name}: g_idx is of {g_idx.dtype}, must be whole numbers, the group of each input")
        natural = torch.arange(inputs, device=g_idx.device) // group
        if g_idx.shape != natural.shape:
            raise ValueError(f"{name}: g_idx is {said(g_idx)}, must be {inputs}, the group of each input")
        if not torch.equal(g_idx.long(), natural):
            columns = torch.argsort(g_idx, stable=True)
            if not torch.equal(g_idx.long()[columns], natural):
                raise ValueError(f"{name}: g_idx has groups of other sizes than {group} each; dequantise such a layer")
            packed = packed_codes(nibbles(turned(qweight))[:, columns])
    return packed, turned(scales), turned(zeros), group, columns


def of_awq(qweight, qzeros, scales, group):
    """The same without an order."""
    inputs, outputs = qweight.shape[0], qweight.shape[-1] * 8
    group = checked_group("LinearInt4.from_awq", inputs, outputs, qweight, "inputs times outputs/8", qzeros, scales, group)
    if inputs % 2:
        raise ValueError(f"LinearInt4.from_awq: qweight has {inputs} inputs, must be an even number")
    codes = turned(nibbles(qweight, AWQ_PLACES))
    return packed_codes(codes), turned(scales), turned(nibbles(qzeros, AWQ_PLACES)), group, None
