"""What a user would pick instead of batch norm; bench/baselines/op_baselines.py says what the tables are."""

import torch

aten = torch.ops.aten


def eps(case):
    return case.parameter("eps", 1e-5)


def layout(x):
    """PyTorch's own kernels for NHWC take four dimensions in channels_last."""
    return x.unsqueeze(-1) if x.stride(1) == 1 and x.shape[1] > 1 else x


def forward_of(x, weight, bias, mean, var, momentum, eps):
    return torch.native_batch_norm(layout(x), weight, bias, mean, var, True, momentum, eps)


def forward(case):
    """PyTorch writes the running statistics in place, of which it takes both or neither."""
    x, weight, bias, mean, var = case.many("x", "weight", "bias", "running_mean", "running_var")
    if (mean is None) != (var is None):
        return None
    mean, var = (None if t is None else t.clone() for t in (mean, var))
    return forward_of, [x, weight, bias, mean, var, case.parameter("momentum", 0.1), eps(case)], ("y", "mean", "rstd")


def inference_of(x, mean, var, weight, bias, eps):
    return torch.nn.functional.batch_norm(layout(x), mean, var, weight, bias, False, 0.0, eps)


def inference(case):
    return inference_of, [*case.many("x", "running_mean", "running_var", "weight", "bias"), eps(case)]


def backward_of(dy, x, weight, mean, rstd):
    return aten.native_batch_norm_backward(layout(dy), layout(x), weight, None, None, mean, rstd, True, 1e-5, [True] * 3)


def backward(case):
    return backward_of, [*case.many("dy", "x", "weight", "mean", "rstd")], ("dx", "dweight", "dbias")


PYTORCH = {"batch_norm": forward, "batch_norm_inference": inference, "batch_norm_backward": backward}
