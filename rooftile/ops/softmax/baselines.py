"""What a user would pick instead of softmax; bench/baselines/op_baselines.py says what the tables are."""

import torch
from op_baselines import gpu_library

aten = torch.ops.aten
triton_kernels = gpu_library("triton_kernels")
liger = gpu_library("liger_kernel.ops.softmax")
quack = gpu_library("quack.softmax")


def log(case):
    return bool(case.parameter("log", 0))


def unscaled(case):
    return case.parameter("scale", 1) == 1


def plain(case):
    return unscaled(case) and not log(case)


def softmax_of(x, log):
    return torch.log_softmax(x, -1) if log else torch.softmax(x, -1)


def backward_of(dy, y, log):
    f = aten._log_softmax_backward_data if log else aten._softmax_backward_data
    return f(dy, y, -1, dy.dtype)


def into(case):
    x, y, f = case.get("x"), case.get("y"), torch.log_softmax if log(case) else torch.softmax
    return [lambda: (f(x, -1, out=y),)] if unscaled(case) else []


def backward_into(case):
    if not unscaled(case):
        return []
    y, dy, dx = case.many("y", "dy", "dx")
    if log(case):
        return [lambda: (aten._log_softmax_backward_data.out(dy, y, -1, dy.dtype, out=dx),)]
    return [lambda: (aten._softmax_backward_data.out(dy, y, -1, dy.dtype, grad_input=dx),)]


PYTORCH = {
    "softmax": lambda c: (softmax_of, [c.get("x"), log(c)]) if unscaled(c) else None,
    "softmax_backward": lambda c: (backward_of, [*c.many("dy", "y"), log(c)]) if unscaled(c) else None,
}
OUT = {"softmax": into, "softmax_backward": backward_into}
TRITON, LIGER, QUACK = {}, {}, {}
if triton_kernels:

    def triton_forward(case):
        x, y, out = case.rows("x"), case.rows("y"), case.get("y")

        def run():
            triton_kernels.softmax(x, y)
            return (out,)

        return [run] if plain(case) else []

    TRITON["softmax"] = triton_forward
if liger:

    def liger_backward(case):
        if not plain(case):
            return []
        y, dy = case.rows("y"), case.rows("dy")
        _, *settings = liger._softmax_forward(y)
        return [lambda: (liger._softmax_backward(dy, y, *settings),)]

    def liger_forward(case):
        x = case.rows("x")
        return [lambda: (liger._softmax_forward(x)[0],)] if plain(case) else []

    LIGER["softmax"] = liger_forward
    LIGER["softmax_backward"] = liger_backward
if quack:

    def quack_forward(case):
        x = case.rows("x")
        return [lambda: (quack.softmax_fwd(x),)] if plain(case) else []

    def quack_backward(case):
        dy, y = case.rows("dy"), case.rows("y")
        return [lambda: (quack.softmax_bwd(dy, y),)] if plain(case) else []

    QUACK = {"softmax": quack_forward, "softmax_backward": quack_backward}
