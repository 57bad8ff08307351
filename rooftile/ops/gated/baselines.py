"""What a user would pick instead of the gated units; rooftile/ops/activation/baselines.py says what the tables are."""

import torch

aten, F = torch.ops.aten, torch.nn.functional
try:
    from liger_kernel.ops import geglu, swiglu
except Exception:
    geglu = swiglu = None


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


def tensors(case, *names):
    return [case.get(name) for name in names]


def plain(case):
    return case.parameter("beta", 1) == 1


PYTORCH = {
    "geglu": lambda c: (geglu_of, [*tensors(c, "gate", "up"), form(c)]),
    "geglu_backward": lambda c: (geglu_backward_of, [*tensors(c, "gate", "up", "dy"), form(c)]),
    "swiglu": lambda c: (swiglu_of, tensors(c, "gate", "up")) if plain(c) else None,
    "swiglu_backward": lambda c: (swiglu_backward_of, tensors(c, "gate", "up", "dy")) if plain(c) else None,
}
# Their backwards write over the operands, so that only the first call computes what it should: left out.
LIGER = {}
if swiglu is not None:
    LIGER["swiglu"] = lambda c: (
        [lambda: (swiglu.swiglu_forward(c.rows("gate"), c.rows("up"))[-1],)] if plain(c) else []
    )
    LIGER["geglu"] = lambda c: (  # the tanh form alone
        [lambda: (geglu.geglu_forward(c.rows("gate"), c.rows("up"))[-1],)] if form(c) == "tanh" else []
    )
