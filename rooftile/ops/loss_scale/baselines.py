"""What a user would pick instead of unscale and update_loss_scale; bench/baselines/op_baselines.py says what the tables are."""

import torch


def unscale(case):
    """What torch.amp.GradScaler.unscale_ calls."""

    def unscaled(gradient, scale):
        found_inf = torch.zeros((), device=gradient.device)
        torch._amp_foreach_non_finite_check_and_unscale_([gradient], found_inf, scale.reshape(()).double().reciprocal().float())
        return gradient, found_inf

    return unscaled, [case.get("gradient"), case.get("scale")]


def update(case):
    """What torch.amp.GradScaler.update calls."""

    def updated(scale, growth_tracker, found_inf):
        torch._amp_update_scale_(scale, growth_tracker, found_inf, 2.0, 0.5, 2000)
        return scale, growth_tracker

    return updated, [case.get(name) for name in ("scale", "growth_tracker", "found_inf")]


PYTORCH = {"unscale": unscale, "update_loss_scale": update}
