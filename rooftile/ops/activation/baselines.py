"""What a user would pick instead of the activations; bench/baselines/op_baselines.py says what the tables are."""

import torch

aten, F = torch.ops.aten, torch.nn.functional


def form(case):
    return "tanh" if case.parameter("tanh", 0) else "none"


def plain_silu(case):
    return case.parameter("beta", 1) == 1


PYTORCH = {
    "relu": lambda c: (F.relu, [c.get("x")]),
    "relu_backward": lambda c: (lambda x, dy: aten.threshold_backward(dy, x, 0), [c.get("x"), c.get("dy")]),
    "sigmoid": lambda c: (torch.sigmoid, [c.get("x")]),
    "sigmoid_backward": lambda c: (aten.sigmoid_backward, [c.get("dy"), c.get("y")]),
    "tanh": lambda c: (torch.tanh, [c.get("x")]),
    "tanh_backward": lambda c: (aten.tanh_backward, [c.get("dy"), c.get("y")]),
    "silu": lambda c: (F.silu, [c.get("x")]) if plain_silu(c) else None,
    "silu_backward": lambda c: (aten.silu_backward, [c.get("dy"), c.get("x")]) if plain_silu(c) else None,
    "gelu": lambda c: (lambda x, how: F.gelu(x, approximate=how), [c.get("x"), form(c)]),
    "gelu_backward": lambda c: (
        lambda dy, x, how: aten.gelu_backward(dy, x, approximate=how),
        [c.get("dy"), c.get("x"), form(c)],
    ),
}
