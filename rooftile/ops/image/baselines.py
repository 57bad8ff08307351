"""What a user would pick instead of rgb_to_gray; bench/baselines/op_baselines.py says what the tables are."""

from op_baselines import library

torch, cv2, numpy = library("torch"), library("cv2"), library("numpy")


def weights(case):
    return (0.21, 0.72, 0.07) if case.parameter("luminosity", 0) else (0.299, 0.587, 0.114)


def gray_of(rgb, r, g, b):
    rgb = rgb.float()
    return (rgb[..., 0] * r + rgb[..., 1] * g + rgb[..., 2] * b + 0.5).to(torch.uint8)


def by_product(case):
    rgb, w = case.get("rgb"), torch.tensor(weights(case), device=case.get("rgb").device)
    return [lambda: ((rgb.float() @ w + 0.5).to(torch.uint8),)]


def opencv(case):
    source, target = case.operands["rgb"], case.outputs[0]
    if source.dtype != "u8" or source.shape[-1] != 3 or case.parameter("luminosity", 0):
        return []
    height = source.shape[0] if len(source.shape) > 2 else 1
    rgb = numpy.frombuffer(source.memory, numpy.uint8, source.bytes).reshape(height, -1, 3)
    gray = numpy.frombuffer(target.memory, numpy.uint8, target.bytes).reshape(height, -1)
    return [lambda: (cv2.cvtColor(rgb, cv2.COLOR_RGB2GRAY, dst=gray),)]


PYTORCH, OUT, OPENCV = {}, {}, {}
if torch:
    PYTORCH["rgb_to_gray"] = lambda c: (gray_of, [c.get("rgb"), *weights(c)])
    OUT["rgb_to_gray"] = by_product
if cv2:
    OPENCV["rgb_to_gray"] = opencv
