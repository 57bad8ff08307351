"""What a user would pick instead of a blur; bench/baselines/op_baselines.py says what the tables are."""

from op_baselines import library

cv2, numpy = library("cv2"), library("numpy")


def pictures(case):
    """The case's pictures as OpenCV takes them, and its name for their border; None where it has none."""
    source, target = case.operands["x"], case.outputs[0]
    if len(source.shape) != 3 or source.shape[-1] not in (1, 3, 4):
        return None
    x = numpy.frombuffer(source.memory, numpy.uint8, source.bytes).reshape(source.shape)
    y = numpy.frombuffer(target.memory, numpy.uint8, target.bytes).reshape(target.shape)
    border = (cv2.BORDER_REPLICATE, cv2.BORDER_REFLECT_101, cv2.BORDER_CONSTANT)[int(case.parameter("border", 0))]
    return x, y, border


def box_blur(case):
    if not (found := pictures(case)):
        return []
    x, y, border = found
    side = 2 * int(case.parameter("radius", 1)) + 1
    return [lambda: (cv2.blur(x, (side, side), dst=y, borderType=border),)]


def gaussian_blur(case):
    if not (found := pictures(case)):
        return []
    x, y, border = found
    return [lambda: (cv2.GaussianBlur(x, (0, 0), case.parameter("sigma", 1), dst=y, borderType=border),)]


OPENCV = {"box_blur": box_blur, "gaussian_blur": gaussian_blur} if cv2 else {}
