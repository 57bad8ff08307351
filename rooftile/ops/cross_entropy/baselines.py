"""What a user would pick instead of cross_entropy; bench/baselines/op_baselines.py says what the tables are."""

import torch
from op_baselines import gpu_library

F = torch.nn.functional
liger = gpu_library("liger_kernel.ops.cross_entropy")


def settings(case):
    return {"weight": case.get("weight"), "ignore_index": int(case.parameter("ignore_index", -100)),
            "reduction": "sum" if case.parameter("reduction", 0) else "mean",
            "label_smoothing": case.parameter("label_smoothing", 0.0)}  # fmt: skip


def plain(case):
    return case.parameter("z_loss", 0) == 0 and case.parameter("i32", 0) == 0


def loss_of(x, target, named):
    return F.cross_entropy(x, target, **named)


def forward(case):
    """The reduced loss alone: PyTorch's function gives it or the rows' losses."""
    return (loss_of, [case.rows("logits"), case.get("target").reshape(-1), settings(case)], ["loss"]) if plain(case) else None


PYTORCH = {"cross_entropy": forward}


def backward(case):
    """The forward once, then its backward as often as it is called."""
    if not plain(case) or case.get("dloss") is None:
        return []
    x = case.rows("logits").detach().requires_grad_()
    with torch.enable_grad():
        loss = F.cross_entropy(x, case.get("target").reshape(-1), **settings(case))
    dloss = case.get("dloss").reshape(()).to(loss.dtype)
    return [lambda: torch.autograd.grad(loss, x, dloss, retain_graph=True)]


OUT = {"cross_entropy_backward": backward}
LIGER = {}
if liger:

    def liger_forward(case):
        """Liger's forward writes the gradient in the logits' place, too: its backward is a multiply."""
        if not plain(case) or case.get("weight") is not None:
            return []
        x, target, named = case.rows("logits"), case.get("target").reshape(-1), settings(case)

        def run():
            found = liger.cross_entropy_forward(x, target, None, named["ignore_index"], 0.0, named["label_smoothing"],
                                                named["reduction"], None, False)
            return case.ordered(loss=found[0])

        return [run]

    LIGER["cross_entropy"] = liger_forward
