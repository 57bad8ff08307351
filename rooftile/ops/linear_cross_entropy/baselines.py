"""What a user would pick instead of linear_cross_entropy; bench/baselines/op_baselines.py says what the tables are."""

import torch
from op_baselines import gpu_library

F = torch.nn.functional
liger = gpu_library("liger_kernel.ops.fused_linear_cross_entropy")


def settings(case):
    return {"weight": case.get("class_weight"), "ignore_index": int(case.parameter("ignore_index", -100)),
            "reduction": "sum" if case.parameter("reduction", 0) else "mean",
            "label_smoothing": case.parameter("label_smoothing", 0.0)}  # fmt: skip


def plain(case):
    return case.parameter("z_loss", 0) == 0 and case.parameter("I", 0) == 0


def loss_of(hidden, weight, target, bias, named):
    """All logits, in hidden's dtype."""
    return F.cross_entropy(F.linear(hidden, weight, bias), target, **named)


def forward(case):
    """The reduced loss alone: PyTorch's function gives it or the rows' losses."""
    if not plain(case) or case.get("bias") is not None:
        return None
    return loss_of, [case.rows("hidden"), case.get("weight"), case.get("target").reshape(-1), None, settings(case)], ["loss"]


PYTORCH = {"linear_cross_entropy": forward}


def backward(case):
    """The forward once, whose logits are kept, then its backward as often as it is called."""
    if not plain(case) or case.get("bias") is not None or case.get("dloss") is None:
        return []
    hidden, weight = (x.detach().requires_grad_() for x in (case.rows("hidden"), case.get("weight")))
    with torch.enable_grad():
        loss = loss_of(hidden, weight, case.get("target").reshape(-1), None, settings(case))
    dloss = case.get("dloss").reshape(()).to(loss.dtype)
    wanted = [hidden] if case.get("dweight") is None else [hidden, weight]
    return [lambda: torch.autograd.grad(loss, wanted, dloss, retain_graph=True)]


OUT = {"linear_cross_entropy_backward": backward}
LIGER = {}
if liger:

    def liger_forward(case):
        """Liger's forward computes the gradients, too: its backward is a multiply."""
        if not plain(case) or case.get("class_weight") is not None or case.get("bias") is not None:
            return []
        hidden, weight, target, named = case.rows("hidden"), case.get("weight"), case.get("target").reshape(-1), settings(case)

        def run():
            found = liger.fused_linear_cross_entropy_forward(hidden, weight, target, None, None, named["ignore_index"], 0.0,
                                                             named["label_smoothing"], named["reduction"])
            return case.ordered(loss=found[0])

        return [run]

    LIGER["linear_cross_entropy"] = liger_forward
