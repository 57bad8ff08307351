"""What a user would pick instead of ema; bench/baselines/op_baselines.py says what the tables are."""

import torch


def lerp(case):
    """What torch.optim.swa_utils.get_ema_multi_avg_fn calls, of one dtype alone."""
    average, parameter = case.get("average"), case.get("parameter")
    if average.dtype != parameter.dtype:
        return None

    def moved(average, parameter):
        torch._foreach_lerp_([average], [parameter], 1e-3)
        return average

    return moved, [average, parameter]


PYTORCH = {"ema": lerp}
