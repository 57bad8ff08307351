"""What a user would pick instead of dynamic tanh; bench/baselines/op_baselines.py says what the tables are."""

import torch
from op_baselines import gpu_library

liger = gpu_library("liger_kernel.ops.dyt")


def dyt_of(x, alpha, weight, bias):
    return torch.tanh(alpha * x) * weight + bias


def backward_of(x, dy, alpha, weight):
    """As autograd computes it, and in f32 as PyTorch's fused kernels do."""
    v, a = x.float(), alpha.float()
    y = torch.tanh(a * v)
    g = dy.float() * weight.float() * (1 - y * y)
    rows = (-1, x.shape[-1])
    dweight, dbias = (dy.float() * y).reshape(rows).sum(0), dy.float().reshape(rows).sum(0)
    return (g * a).to(x.dtype), (g * v).sum().reshape(alpha.shape).to(alpha.dtype), dweight.to(weight.dtype), dbias.to(weight.dtype)


def forward(case):
    operands = [case.get(name) for name in ("x", "alpha", "weight", "bias")]
    plain = all(o is not None and o.dtype == operands[0].dtype for o in operands)
    return (dyt_of, operands) if plain else None


def backward(case):
    operands = [case.get(name) for name in ("x", "dy", "alpha", "weight")]
    plain = all(o is not None and o.dtype == operands[0].dtype for o in operands) and len(case.outputs) == 4
    return (backward_of, operands) if plain else None


PYTORCH = {"dyt": forward, "dyt_backward": backward}


def liger_forward(case):
    if not forward(case):
        return []
    x, alpha, weight, bias = (case.rows("x"), *(case.get(name) for name in ("alpha", "weight", "bias")))
    return [lambda: [liger.liger_dyt_fwd(x, alpha, weight, bias)]]


def liger_backward(case):
    if not backward(case):
        return []
    x, dy, alpha, weight = (case.rows("x"), case.rows("dy"), case.get("alpha"), case.get("weight"))
    bias = torch.zeros_like(weight)  # whose values it does not read
    return [lambda: liger.liger_dyt_bwd(dy, x, alpha, weight, bias)]


LIGER = {"dyt": liger_forward, "dyt_backward": liger_backward} if liger is not None else {}
