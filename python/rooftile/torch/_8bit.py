"""A product of activations quantised on the fly with a frozen weight in 8 bits, and its gradient."""

import torch

from rooftile import _functions
from rooftile.torch._frozen import operators
from rooftile.torch._linear import as_rows, cast, said
from rooftile.torch._operators import known

NAME = "rooftile.torch.linear_8bit"
#: What quantises x beside a weight of a format; f8e5m2 has the range for gradients, and two bits: activations are f8e4m3.
QUANTIZE = {torch.float8_e4m3fn: "quantize_f8e4m3", torch.float8_e5m2: "quantize_f8e4m3", torch.int8: "quantize_i8"}
SCHEMAS = {
    "linear_8bit": "(Tensor x, Tensor codes, Tensor scale, Tensor? bias, int block, int block_n) -> Tensor",
    "weight_8bit": "(Tensor codes, Tensor scale, int block, int block_n, ScalarType dtype) -> Tensor",
}


def product_shape(x, codes, scale, bias, block, block_n):
    return x.new_empty((*x.shape[:-1], codes.shape[0]))


def product(x, codes, scale, bias, block, block_n):
    y = product_shape(x, codes, scale, bias, block, block_n)
    x_codes, x_scale = _functions.below_gradients[QUANTIZE[codes.dtype]](x, block=block)
    _functions.below_gradients["gemm_scaled"](x_codes, codes.mT, x_scale, scale.mT, bias=bias, block=block, block_n=block_n, out=y)
    return y


def weight_shape(codes, scale, block, block_n, dtype):
    return scale.new_empty(codes.shape, dtype=dtype)


def weight(codes, scale, block, block_n, dtype):
    w = weight_shape(codes, scale, block, block_n, dtype)
    rows = scale.repeat_interleave(min(block_n, max(len(codes), 1)), 0)[:len(codes)]
    _functions.below_gradients["dequantize"](codes, rows, block=block, out=w)
    return w


def remember(ctx, inputs, output):
    _, codes, scale, bias, ctx.block, ctx.block_n = inputs
    ctx.bias = None if bias is None else bias.dtype
    ctx.save_for_backward(codes, scale)


def gradient(ctx, dy):
    codes, scale = ctx.saved_tensors
    rows, dx, dbias = as_rows(dy), None, None
    if ctx.needs_input_grad[0]:
        w = torch.ops.rooftile.weight_8bit(codes, scale, ctx.block, ctx.block_n, dy.dtype)
        dx = known["gemm"].product(rows, w).view(*dy.shape[:-1], codes.shape[1])
    if ctx.needs_input_grad[3]:
        dbias = rows.sum(0, dtype=torch.float32).to(ctx.bias)
    return dx, None, None, dbias, None, None


# Without the kernels, in a build of other functions, there are no operators either.
if {"gemm_scaled", "dequantize"} <= set(known):
    differentiable_product = operators({"linear_8bit": (product, product_shape), "weight_8bit": (weight, weight_shape)}, SCHEMAS, gradient, remember)


def refuse_misfits(x, codes, scale, block, block_n):
    if codes.dtype not in QUANTIZE or codes.dim() != 2:
        raise TypeError(f"{NAME}: codes are {said(codes)} of {codes.dtype}, must be of 2 dimensions, outputs, then inputs, and "
                        "float8_e4m3fn, float8_e5m2 or int8")
    if x.dim() < 1 or x.shape[-1] != codes.shape[1]:
        raise ValueError(f"{NAME}: x is {said(x)}, its last size must be codes' second, {codes.shape[1]}")
    if min(block, block_n) < 1:
        raise ValueError(f"{NAME}: block is {block}, block_n {block_n}, both must be 1 or more")
    expected = (-(-codes.shape[0] // block_n), -(-codes.shape[1] // block))
    if scale.shape != expected:
        raise ValueError(f"{NAME}: scale is {said(scale)}, must be {expected[0]}x{expected[1]}: one for {block_n} rows and {block} "
                         f"columns of codes, which are {said(codes)}")


def linear_8bit(x, codes, scale, bias=None, block=128, block_n=1):
    """x·Wᵀ + bias for a weight W of 8-bit codes with scales, as quantize_f8e4m3, quantize_f8e5m2 or quantize_i8 gives them: codes of
    (outputs, inputs), scale of (⌈outputs/block_n⌉, ⌈inputs/block⌉). x, f32, f16 or bf16, is quantised on the fly, with a scale for
    each `block` elements of a row, to int8 where W is, else to float8_e4m3fn; gemm_scaled multiplies the codes. block: inputs or
    more for a scale of each row; block_n: 128 for DeepSeek's squares.

    Under autocast in its dtype. W is frozen: gradients are x's, straight through the rounding of x, for which W is dequantised
    into memory for as long as one product takes, and bias's."""
    x, bias = cast(x, bias)
    refuse_misfits(x, codes, scale, block, block_n)
    y = differentiable_product(as_rows(x), codes, scale, bias, block, block_n)
    return y.view(*x.shape[:-1], codes.shape[0])
