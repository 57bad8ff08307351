"""What a user would pick instead of conv2d; bench/baselines/op_baselines.py says what the tables are."""

import torch

torch.backends.cudnn.allow_tf32 = False  # as is PyTorch's default for products: f32 is f32


def operand(case, name):
    """NHWC is a permuted view, which PyTorch takes for channels_last."""
    t = case.get(name)
    return t.permute(0, 3, 1, 2) if case.parameter("channels_last", 0) else t


def pairs(case):
    return [(int(case.parameter(f"{name}_h", default)), int(case.parameter(f"{name}_w", default)))
            for name, default in (("stride", 1), ("padding", 0), ("dilation", 1))]


def forward(case):
    if case.parameter("activation", 0):
        return None
    options, groups, last = pairs(case), int(case.parameter("groups", 1)), case.parameter("channels_last", 0)
    bias = case.get("bias") if case.parameter("bias", 1) else None

    def call(x, w):
        y = torch.nn.functional.conv2d(x, w, bias, *options, groups)
        return y.permute(0, 2, 3, 1) if last else y

    return call, [operand(case, "x"), operand(case, "w")]


PYTORCH = {"conv2d": forward}
