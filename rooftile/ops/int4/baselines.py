"""What a user would pick instead of 4-bit groups; bench/baselines/op_baselines.py says what the tables are."""

import torch


def dense(case):
    """PyTorch's product with the weight dequantised beforehand: in bf16 3.8 times the bytes."""
    x, packed, scales, zeros, bias = case.many("x", "packed", "scales", "zeros", "bias")
    codes = torch.stack([packed & 15, packed >> 4], -1).flatten(1)[:, :x.shape[-1]].float()
    groups = torch.arange(x.shape[-1], device=x.device) // int(case.parameter("group", 128))
    zero = 8 if zeros is None else zeros.float()[:, groups]
    w = ((codes - zero) * scales.float()[:, groups]).to(x.dtype)
    return torch.nn.functional.linear, [x, w, bias]


PYTORCH = {"gemm_int4": dense}
