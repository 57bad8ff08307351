"""What a user would pick instead of sgd; bench/baselines/op_baselines.py says what the tables are."""

import torch


def fused(case):
    """torch.optim.SGD(fused=True)'s kernel on the same tensors; it has no master weights."""
    operands = [case.get(name) for name in ("parameter", "gradient", "momentum_buffer")]
    if any(o is None or o.dtype != operands[0].dtype for o in operands) or case.get("master") is not None:
        return None

    def step(parameter, gradient, buffer):
        torch._fused_sgd_([parameter], [gradient], [buffer], lr=1e-3, momentum=0.9, dampening=0.0, weight_decay=0.0, nesterov=False,
                          maximize=False, is_first_step=False)
        return parameter, buffer

    return step, operands


PYTORCH = {"sgd": fused}
