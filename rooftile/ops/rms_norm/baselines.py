"""What a user would pick instead of RMS norm; bench/baselines/op_baselines.py says what the tables are."""

import torch
from op_baselines import gpu_library

aten = torch.ops.aten
liger = gpu_library("liger_kernel.ops.rms_norm")


def norm_of(x, weight, eps):
    return torch.nn.functional.rms_norm(x, [x.shape[-1]], weight, eps)


def norm_with_rstd(x, weight, eps):
    y, rstd = aten._fused_rms_norm(x, [x.shape[-1]], weight, eps)
    return y, rstd.squeeze(-1)


def backward_of(x, dy, weight, rstd):
    if not x.is_cuda:  # PyTorch's kernel is CUDA's alone
        g, r = dy.float() * weight.float(), rstd.unsqueeze(-1)
        normal = x.float() * r
        dx = (g - normal * (g * normal).mean(-1, keepdim=True)) * r
        dweight = (dy.float() * normal).reshape(-1, x.shape[-1]).sum(0)
        return dx.to(x.dtype), dweight.to(weight.dtype)
    return aten._fused_rms_norm_backward(dy, x, [x.shape[-1]], rstd.unsqueeze(-1), weight, [True, True])


def plain(case):
    return case.parameter("unit_offset", 0) == 0 and case.get("weight") is not None and case.get("residual") is None


def forward(case):
    if not plain(case) or case.get("weight").dtype != case.get("x").dtype:
        return None
    arguments = [case.get("x"), case.get("weight"), case.parameter("eps", 1e-6)]
    return (norm_with_rstd if len(case.outputs) == 2 else norm_of), arguments


PYTORCH = {
    "rms_norm": forward,
    "rms_norm_backward": lambda c: (
        (backward_of, [c.get(name) for name in ("x", "dy", "weight", "rstd")])
        if plain(c) and len(c.outputs) == 2
        else None
    ),
}


def liger_forward(case):
    if not plain(case) or len(case.outputs) != 2:
        return []
    x, weight, eps = case.rows("x"), case.get("weight"), case.parameter("eps", 1e-6)

    def call():
        y, _, rstd, *_ = liger.rms_norm_forward(x, weight, eps, 0.0, "none", None)
        return y, rstd

    return [call]


LIGER = {"rms_norm": liger_forward} if liger is not None else {}
