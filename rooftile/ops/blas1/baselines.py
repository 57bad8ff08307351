"""What a user would pick instead of the vectors' functions; bench/baselines/op_baselines.py says what the tables are."""

import torch
from op_baselines import gpu_library

triton_kernels = gpu_library("triton_kernels")


def copy_of(x):
    return x.clone()


def add_of(x, y):
    return x + y


def axpby_of(x, y, alpha, beta):
    return y.copy_(alpha * x + beta * y)


def swap_of(x, y):
    return y.clone(), x.clone()


def scal_of(x, alpha):
    return x * alpha


def wide(x):
    """What sums are in: those of halves in f32."""
    return torch.float64 if x.dtype == torch.float64 else torch.float32


def dot_of(x, y):
    return (x.to(wide(x)) * y.to(wide(y))).sum()


def norm_of(x, order, dtype):
    """PyTorch adds up f32 squares as they are: it overflows where nrm2 does not."""
    return torch.linalg.vector_norm(x, order, dtype=dtype)


def factors(case):
    return [case.parameter("alpha", 0.7), case.parameter("beta", -0.3)]


def copy_into(case):
    x, y = case.many("x", "y")
    return [lambda: (y.copy_(x),)]


def axpby_into(case):
    x, y, (alpha, beta) = *case.many("x", "y"), factors(case)
    return [lambda: (y.mul_(beta).add_(x, alpha=alpha),)]


def add_into(case):
    x, y, z = case.many("x", "y", "z")
    return [lambda: (torch.add(x, y, out=z),)]


def scal_into(case):
    x, y, alpha = *case.many("x", "y"), case.parameter("alpha", 0.7)
    return [lambda: (torch.mul(x, alpha, out=y),)]


def torch_dot(case):
    x, y = (tensor.flatten() for tensor in case.many("x", "y"))
    return [lambda: (torch.dot(x, y),)]


PYTORCH = {
    "copy": lambda c: (copy_of, [c.get("x")]),
    "add": lambda c: (add_of, c.many("x", "y")),
    "axpby": lambda c: (axpby_of, [*c.many("x", "y"), *factors(c)]),
    "swap": lambda c: (swap_of, c.many("x", "y")),
    "scal": lambda c: (scal_of, [c.get("x"), c.parameter("alpha", 0.7)]),
    "dot": lambda c: (dot_of, c.many("x", "y")),
    "nrm2": lambda c: (norm_of, [c.get("x"), 2, wide(c.get("x"))]),
    "asum": lambda c: (norm_of, [c.get("x"), 1, wide(c.get("x"))]),
}
OUT = {
    "copy": copy_into,
    "add": add_into,
    "axpby": axpby_into,
    "scal": scal_into,
    "dot": torch_dot,
}
CUBLAS = {"dot": torch_dot}  # which is cuBLAS's on a GPU
TRITON = {}
if triton_kernels:

    def triton_add(case):
        x, y, z = case.many("x", "y", "z")

        def run():
            triton_kernels.add(x, y, z)
            return (z,)

        return [run]

    TRITON["add"] = triton_add
