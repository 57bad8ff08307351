"""What a user would pick instead of swap, scal, nrm2 and asum; rooftile/ops/activation/baselines.py says what the tables
are.
"""

import torch


def swap_of(x, y):
    return y.clone(), x.clone()


def scal_of(x, alpha):
    return x * alpha


def norm_of(x, order, dtype):
    """PyTorch adds up f32 squares as they are: it overflows where nrm2 does not."""
    return torch.linalg.vector_norm(x, order, dtype=dtype)


def norm_call(case, order):
    x = case.get("x")
    return norm_of, [x, order, torch.float64 if x.dtype == torch.float64 else torch.float32]


PYTORCH = {
    "swap": lambda c: (swap_of, [c.get("x"), c.get("y")]),
    "scal": lambda c: (scal_of, [c.get("x"), c.parameter("alpha", 0.7)]),
    "nrm2": lambda c: norm_call(c, 2),
    "asum": lambda c: norm_call(c, 1),
}
LIGER = {}
