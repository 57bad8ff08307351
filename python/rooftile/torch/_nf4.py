"""A product with a frozen weight in NF4, and its gradient: operators of PyTorch's, whose outputs' sizes are arguments, since no
operand's shape says them."""

import torch

from rooftile import _functions
from rooftile.torch._frozen import operators
from rooftile.torch._linear import as_rows, cast, said
from rooftile.torch._operators import functions, known

NAME = "rooftile.torch.linear_nf4"
SCHEMAS = {
    "linear_nf4": "(Tensor x, Tensor packed, Tensor absmax, Tensor? bias, int out_features, int block) -> Tensor",
    "nf4_weight": "(Tensor packed, Tensor absmax, int out_features, int in_features, int block, ScalarType dtype) -> Tensor",
}


def product_shape(x, packed, absmax, bias, out_features, block):
    return x.new_empty((*x.shape[:-1], out_features))


def product(x, packed, absmax, bias, out_features, block):
    y = product_shape(x, packed, absmax, bias, out_features, block)
    _functions.below_gradients["gemm_nf4"](x, packed, absmax, bias=bias, block=block, out=y)
    return y


def weight_shape(packed, absmax, out_features, in_features, block, dtype):
    return absmax.new_empty((out_features, in_features), dtype=dtype)


def weight(packed, absmax, out_features, in_features, block, dtype):
    w = weight_shape(packed, absmax, out_features, in_features, block, dtype)
    _functions.below_gradients["dequantize_nf4"](packed, absmax, block=block, out=w)
    return w


def remember(ctx, inputs, output):
    x, packed, absmax, bias, _, ctx.block = inputs
    ctx.bias = None if bias is None else bias.dtype
    ctx.save_for_backward(packed, absmax)
    ctx.in_features = x.shape[-1]


def gradient(ctx, dy):
    packed, absmax = ctx.saved_tensors
    rows, dx, dbias = as_rows(dy), None, None
    if ctx.needs_input_grad[0]:
        w = torch.ops.rooftile.nf4_weight(packed, absmax, dy.shape[-1], ctx.in_features, ctx.block, dy.dtype)
        dx = known["gemm"].product(rows, w).view(*dy.shape[:-1], ctx.in_features)
    if ctx.needs_input_grad[3]:
        dbias = rows.sum(0, dtype=torch.float32).to(ctx.bias)
    return dx, None, None, dbias, None, None


# Without the kernels, in a build of other functions, there are no operators either.
if {"gemm_nf4", "dequantize_nf4"} <= set(known):
    differentiable_product = operators({"linear_nf4": (product, product_shape), "nf4_weight": (weight, weight_shape)}, SCHEMAS, gradient, remember)


def linear_nf4(x, packed, absmax, out_features, bias=None, block=64):
    """x·Wᵀ + bias for a weight W of (out_features, x's last size) that quantize_nf4 packed: torch.nn.functional.linear without W
    in memory. Bits are those of linear on the weight as dequantize_nf4 gives it in x's dtype.

    x: (…, inputs), f32, f16 or bf16; under autocast in its dtype. W is frozen: gradients are x's, for which W is dequantised into
    memory for as long as one product takes, and bias's."""
    x, bias = cast(x, bias)
    if x.dim() < 1 or packed.shape != ((out_features * x.shape[-1] + 1) // 2,):
        raise ValueError(f"{NAME}: packed is {said(packed)} and x is {said(x)}, packed must hold a byte for two weights: {out_features} "
                         "times x's last size, halved")
    y = differentiable_product(as_rows(x), packed, absmax, bias, out_features, block)
    return y.view(*x.shape[:-1], out_features)
