"""What a user would pick instead of gemm; bench/baselines/op_baselines.py says what the tables are."""

import torch

ACTIVATIONS = (None, torch.relu, torch.nn.functional.gelu, lambda x: torch.nn.functional.gelu(x, approximate="tanh"),
               torch.nn.functional.silu, torch.sigmoid, torch.tanh)


def bare(case):
    """One dtype, and nothing but A·B and a bias: what matmul and addmm compute as they are."""
    a, y = case.many("a", "y")
    return (a.dtype == y.dtype and case.parameter("alpha", 1) == 1 and case.parameter("beta", 0) == 0
            and case.parameter("gate", 0) == 0)  # fmt: skip


def factors(case):
    """a and b as they are multiplied: "turned" 1 keeps a by columns, 2 b, 3 both."""
    a, b = case.many("a", "b")
    turned = int(case.parameter("turned", 0))
    return a.mT if turned & 1 else a, b.mT if turned & 2 else b


def product_of(a, b, bias, activation):
    y = a @ b if bias is None else a @ b + bias
    return y if activation is None else activation(y)


def forward(case):
    if not bare(case):
        return None
    a, b = factors(case)
    bias = case.get("bias")
    return product_of, [a, b, bias, ACTIVATIONS[int(case.parameter("activation", 0))]]


def into(case):
    if not bare(case) or case.parameter("activation", 0) != 0:
        return []
    a, b = factors(case)
    bias, y = case.many("bias", "y")
    if bias is not None:
        return [lambda: (torch.addmm(bias, a, b, out=y),)] if a.dim() == 2 else []
    return [lambda: (torch.matmul(a, b, out=y),)]


PYTORCH = {"gemm": forward}
OUT = {"gemm": into}
