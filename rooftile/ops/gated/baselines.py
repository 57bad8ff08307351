"""What a user would pick instead of the gated units; bench/baselines/op_baselines.py says what the tables are."""

import torch
from op_baselines import gpu_library

aten, F = torch.ops.aten, torch.nn.functional
geglu, swiglu = gpu_library("liger_kernel.ops.geglu"), gpu_library("liger_kernel.ops.swiglu")


def form(case):
    return "tanh" if case.parameter("tanh", 0) else "none"


def geglu_of(gate, up, how):
    return F.gelu(gate, approximate=how) * up


def geglu_backward_of(gate, up, dy, how):
    return aten.gelu_backward(dy * up, gate, approximate=how), dy * F.gelu(gate, approximate=how)


def swiglu_of(gate, up):
    return F.silu(gate) * up


def swiglu_backward_of(gate, up, dy):
    return aten.silu_backward(dy * up, gate), dy * F.silu(gate)


def plain(case):
    return case.parameter("beta", 1) == 1


PYTORCH = {
    "geglu": lambda c: (geglu_of, [*c.many("gate", "up"), form(c)]),
    "geglu_backward": lambda c: (geglu_backward_of, [*c.many("gate", "up", "dy"), form(c)]),
    "swiglu": lambda c: (swiglu_of, c.many("gate", "up")) if plain(c) else None,
    "swiglu_backward": lambda c: (swiglu_backward_of, c.many("gate", "up", "dy")) if plain(c) else None,
}
LIGER = {}  # without the backwards, which write over the operands: only the first call computes what it should
if geglu and swiglu:

    def liger_swiglu(case):
        gate, up = case.rows("gate"), case.rows("up")
        return [lambda: (swiglu.swiglu_forward(gate, up)[-1],)] if plain(case) else []

    def liger_geglu(case):  # the tanh form alone
        gate, up = case.rows("gate"), case.rows("up")
        return [lambda: (geglu.geglu_forward(gate, up)[-1],)] if form(case) == "tanh" else []

    LIGER = {"swiglu": liger_swiglu, "geglu": liger_geglu}
