"""What a user would pick instead of grad_norm and clip_by_norm; bench/baselines/op_baselines.py says what the tables are."""

import torch


def total_norm(case):
    if case.get("gradient_scale") is not None:
        return None

    def norm(gradient):
        return torch.nn.utils.get_total_norm([gradient])

    return norm, [case.get("gradient")], ["norm"]


def clip(case):
    """torch.nn.utils.clip_grads_with_norm_, whose max_norm is 1 here."""
    if case.get("gradient_scale") is not None:
        return None

    def clipped(gradient, norm):
        torch._foreach_mul_([gradient], torch.clamp(1 / (norm + 1e-6), max=1))
        return gradient

    return clipped, [case.get("gradient"), case.get("norm")]


PYTORCH = {"grad_norm": total_norm, "clip_by_norm": clip}
