"""What a user would pick instead of gemm_scaled; bench/baselines/op_baselines.py says what the tables are."""

import torch
import op_baselines


def operands(case):
    """a {M, K}; b {K, N} by columns, as PyTorch's product wants it; their scales; y. None of i8, more scales for b or a batch."""
    a, b, scale_a, scale_b, bias, y = case.many("a", "b", "scale_a", "scale_b", "bias", "y")
    if a.dim() != 2 or case.parameter("turned", 0) != 1 or case.parameter("block_n", 1) != 1 or not a.dtype.is_floating_point:
        return None
    return a, b.mT, scale_a, scale_b.mT, bias, y


def scaled_mm(case):
    """torch._scaled_mm, which is cuBLASLt's or CUTLASS's: a scale for a row and a column, or, from PyTorch 2.9 on, for each 128 of
    K."""
    taken = operands(case)
    if taken is None or op_baselines.device != "cuda":
        return []
    a, b, scale_a, scale_b, bias, y = taken
    if scale_a.shape[-1] == 1:
        return [lambda: (torch._scaled_mm(a, b, scale_a, scale_b, bias=bias, out_dtype=y.dtype, out=y),)]
    if case.parameter("block", 128) != 128:
        return []
    # Of 1x128 by 1x128: scales of a by columns, of b by rows.
    by_columns, by_rows = scale_a.t().contiguous().t(), scale_b.contiguous()
    return [lambda: (torch._scaled_mm(a, b, by_columns, by_rows, bias=bias, out_dtype=y.dtype, out=y),)]


def dense(case):
    """PyTorch's product of both operands dequantised beforehand: in bf16 twice the bytes."""
    a, b, scale_a, scale_b, bias, y = case.many("a", "b", "scale_a", "scale_b", "bias", "y")
    if case.parameter("turned", 0) == 1:
        b, scale_b = b.mT, scale_b.mT
    if case.parameter("block_n", 1) != 1:
        return None
    block = min(int(case.parameter("block", 128)), max(a.shape[-1], 1))

    def dequantized(codes, scale):
        return (codes.float() * scale.repeat_interleave(block, -1)[..., :codes.shape[-1]]).to(y.dtype)

    left, right = dequantized(a, scale_a), dequantized(b.mT, scale_b.mT)

    def product(left, right, bias):
        return left @ right.mT if bias is None else left @ right.mT + bias

    return product, [left, right, bias]


PYTORCH = {"gemm_scaled": dense}
OUT = {"gemm_scaled": scaled_mm}
