"""What a user would pick instead of dropout; bench/baselines/op_baselines.py says what the tables are. Each draws a mask of
its own, so that nothing is returned to be compared."""

import torch


def forward(case):
    x, p = case.get("x"), case.parameter("p", 0.5)
    residual = case.get("residual") if case.parameter("residual", 0) else None

    def run():
        y = torch.nn.functional.dropout(x, p)
        y if residual is None else y.add_(residual)
        return (None,)

    return [run]


def backward(case):
    """Of the mask that PyTorch's forward keeps in memory, a byte for each element."""
    dy, p = case.get("dy"), case.parameter("p", 0.5)
    if p == 1 or case.parameter("dresidual", 0):
        return []
    mask = torch.rand_like(dy, dtype=torch.float32) >= p

    def run():
        torch.ops.aten.native_dropout_backward(dy, mask, 1 / (1 - p))
        return (None,)

    return [run]


OUT = {"dropout": forward, "dropout_backward": backward}
