"""What a user would pick instead of layer norm; bench/baselines/op_baselines.py says what the tables are."""

import torch
from op_baselines import gpu_library

aten = torch.ops.aten
triton_kernels = gpu_library("triton_kernels")
liger = gpu_library("liger_kernel.ops.layer_norm")
quack = gpu_library("quack.rmsnorm")

FORWARD = ("y", "mean", "rstd", "sum")
BACKWARD = ("dx", "dweight", "dbias")


def eps(case):
    return case.parameter("eps", 1e-5)


def layer_norm_of(x, weight, bias, eps):
    y, mean, rstd = torch.native_layer_norm(x, [x.shape[-1]], weight, bias, eps)
    return y, mean.squeeze(-1), rstd.squeeze(-1)


def residual_norm_of(x, residual, weight, bias, eps):
    total = x + residual
    return *layer_norm_of(total, weight, bias, eps), total


def backward_of(dy, x, mean, rstd, weight, bias):
    shape = [x.shape[-1]]
    return aten.native_layer_norm_backward(dy, x, shape, mean, rstd, weight, bias, [True, weight is not None, bias is not None])


def forward(case):
    x, residual, weight, bias = case.many("x", "residual", "weight", "bias")
    if residual is not None:
        return residual_norm_of, [x, residual, weight, bias, eps(case)], FORWARD
    return layer_norm_of, [x, weight, bias, eps(case)], FORWARD


def into(case):
    x, residual, weight, bias, y = case.many("x", "residual", "weight", "bias", "y")
    total = case.get("sum")
    source = x if residual is None else total if total is not None else torch.empty_like(x)
    shape = [x.shape[-1]]
    _, mean, rstd = torch.native_layer_norm(x, shape, weight, bias, eps(case))  # in its shape and dtype

    def run():
        if residual is not None:
            torch.add(x, residual, out=source)
        aten.native_layer_norm.out(source, shape, weight, bias, eps(case), out0=y, out1=mean, out2=rstd)
        return case.ordered(y=y, mean=mean, rstd=rstd, sum=total)

    return [run]


def backward_arguments(case):
    """None where the case has what PyTorch's backward does not: a residual's gradient, no statistics."""
    dy, x, mean, rstd, weight = case.many("dy", "x", "mean", "rstd", "weight")
    if mean is None or rstd is None or case.get("dsum") is not None:
        return None
    bias = torch.zeros_like(weight) if weight is not None else None
    like = torch.native_layer_norm(x, [x.shape[-1]], weight, bias, 1e-5)[1]  # their shape and dtype
    return [dy, x, mean.reshape(like.shape).to(like.dtype), rstd.reshape(like.shape).to(like.dtype), weight, bias]


def backward(case):
    arguments = backward_arguments(case)
    return (backward_of, arguments, BACKWARD) if arguments else None


def backward_into(case):
    arguments = backward_arguments(case)
    if arguments is None or case.get("weight") is None:
        return []
    dy, x, mean, rstd, weight, bias = arguments
    dx, (_, dweight, dbias) = case.get("dx"), backward_of(*arguments)
    f, shape = aten.native_layer_norm_backward.out, [x.shape[-1]]

    def run():
        f(dy, x, shape, mean, rstd, weight, bias, [True] * 3, out0=dx, out1=dweight, out2=dbias)
        return case.ordered(dx=dx, dweight=dweight, dbias=dbias)

    return [run]


PYTORCH = {"layer_norm": forward, "layer_norm_backward": backward}
OUT = {"layer_norm": into, "layer_norm_backward": backward_into}
TRITON, LIGER, QUACK = {}, {}, {}


def simple(case):
    """No residual, but a bias: what the others have."""
    return case.get("residual") is None and case.get("bias") is not None


def simple_backward(case):
    return len(case.outputs) == 3 and case.get("weight") is not None


if triton_kernels:

    def triton_forward(case):
        if not simple(case) or len(case.outputs) != 3:
            return []
        x, y = case.rows("x"), case.rows("y")
        weight, bias, mean, rstd = case.get("weight"), case.get("bias"), case.get("mean"), case.get("rstd")

        def run():
            triton_kernels.layer_norm(x, weight, bias, y, mean.view(-1), rstd.view(-1), eps(case))
            return case.ordered(y=y, mean=mean, rstd=rstd)

        return [run]

    TRITON["layer_norm"] = triton_forward
if liger:

    def liger_forward(case):
        if not simple(case):
            return []
        x, weight, bias = case.rows("x"), case.get("weight"), case.get("bias")

        def run():
            y, _, mean, rstd, _, _ = liger.layer_norm_forward(x, weight, bias, eps(case))
            return case.ordered(y=y, mean=mean, rstd=rstd)

        return [run]

    def liger_backward(case):
        if not simple_backward(case):
            return []
        dy, x, weight = case.rows("dy"), case.rows("x"), case.get("weight")
        mean, rstd = case.get("mean").view(-1), case.get("rstd").view(-1)

        def run():
            dx, dweight, dbias = liger.layer_norm_backward(dy, x, weight, weight, mean, rstd)
            return case.ordered(dx=dx, dweight=dweight, dbias=dbias)

        return [run]

    LIGER = {"layer_norm": liger_forward, "layer_norm_backward": liger_backward}
if quack:

    def quack_forward(case):
        if not simple(case):
            return []
        # It takes f32 weights alone; what they cost to read is nothing beside the rows.
        x, weight, bias = case.rows("x"), case.get("weight").float(), case.get("bias").float()

        def run():
            y, rstd, mean = quack.layernorm_fwd(x, weight, bias, eps(case), True, True)
            return case.ordered(y=y, mean=mean, rstd=rstd)

        return [run]

    def quack_backward(case):
        if not simple_backward(case):
            return []
        dy, x, weight = case.rows("dy"), case.rows("x"), case.get("weight")
        mean, rstd = case.get("mean").view(-1), case.get("rstd").view(-1)

        def run():
            dx, dweight, dbias = quack.layernorm_bwd(x, weight, dy, rstd, mean)
            return case.ordered(dx=dx, dweight=dweight, dbias=dbias)

        return [run]

    QUACK = {"layer_norm": quack_forward, "layer_norm_backward": quack_backward}
