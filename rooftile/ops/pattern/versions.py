"""A colour pattern in five languages: rooftile/ops/languages.py says how these functions are found, run and judged.

It has no input: a version takes the result's shape and dtype. Angles are in f64, and a time is reduced to one turn before
it is added; the library's angles are whole fractions of a turn.
"""

import math

from languages import cuda, np, takes, tl, torch, trap, triton

BLOCK = 1024  # pixels of a Triton program
SIDE = 8  # of a CUDA block


def starts(t):
    """The time's angles of red, green and blue, each within a turn: exact products, an exact remainder of a long 2 pi."""
    numerator, denominator = float(t).as_integer_ratio()
    pi = 3141592653589793238462643383279502884197169399375105820974944592307816406286
    turn, one = 2 * pi, 10**75
    return [factor * numerator * one % (turn * 10 * denominator) / (10 * denominator) / one for factor in (10, 7, 13)]


# [color_pattern_plain]
def color_pattern_plain(shape, dtype, t=0):
    height, width, _ = shape
    start = starts(t)

    def color(place, k):
        value = 0.5 + 0.5 * math.sin(0.01 * place + start[k])
        return int(255 * value + 0.5) if dtype == "u8" else value

    most = 255 if dtype == "u8" else 1
    return [[[color(j, 0), color(i, 1), color(i + j, 2), most] for j in range(width)] for i in range(height)]
# [/color_pattern_plain]


# [color_pattern_numpy]
def color_pattern_numpy(shape, dtype, t=0):
    """Broadcasting: a sine for each column, row and diagonal would do; NumPy takes blue's for each pixel."""
    i, j = np.arange(shape[0])[:, None], np.arange(shape[1])[None, :]
    y = np.ones(shape)
    for k, (place, start) in enumerate(zip((j, i, i + j), starts(t))):
        y[..., k] = 0.5 + 0.5 * np.sin(0.01 * place + start)
    return np.floor(255 * y + 0.5).astype(np.uint8) if dtype == "u8" else y
# [/color_pattern_numpy]


# [color_pattern_numpy_f32]
@trap("angles in f32: at t = 4000 neighbours are 1/4096 apart, so that only three decimals of an angle are right")
def color_pattern_numpy_f32(shape, dtype, t=0):
    i, j = np.arange(shape[0], dtype=np.float32)[:, None], np.arange(shape[1], dtype=np.float32)[None, :]
    y = np.ones(shape, np.float32)
    for k, (place, factor) in enumerate(zip((j, i, i + j), (1, 0.7, 1.3))):
        y[..., k] = np.float32(0.5) + np.float32(0.5) * np.sin(np.float32(0.01) * place + np.float32(factor * t))
    return np.floor(255 * y + 0.5).astype(np.uint8) if dtype == "u8" else y
# [/color_pattern_numpy_f32]


# [color_pattern_torch]
def color_pattern_torch(shape, dtype, t=0):
    i = torch.arange(shape[0], dtype=torch.float64)[:, None]
    j = torch.arange(shape[1], dtype=torch.float64)[None, :]
    waves = [0.5 + 0.5 * torch.sin(0.01 * place + start) for place, start in zip((j, i, i + j), starts(t))]
    y = torch.stack(torch.broadcast_tensors(*waves, torch.ones_like(waves[2])), -1)
    return (255 * y + 0.5).floor().to(torch.uint8) if dtype == "u8" else y
# [/color_pattern_torch]


# [color_pattern_triton]
@triton.jit
def pattern_kernel(y, start, n, width, U8: tl.constexpr, BLOCK: tl.constexpr):
    pixel = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = pixel < n
    i = (pixel // width).to(tl.float64)
    j = (pixel % width).to(tl.float64)
    for k in tl.static_range(4):
        place = j if k == 0 else (i if k == 1 else i + j)
        value = 0.5 + 0.5 * tl.sin(0.01 * place + tl.load(start + k % 3)) if k < 3 else 0 * j + 1
        value = tl.floor(255 * value + 0.5) if U8 else value
        tl.store(y + 4 * pixel + k, value.to(y.dtype.element_ty), mask=mask)


def color_pattern_triton(shape, dtype, t=0):
    kind = {"u8": torch.uint8, "f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}[dtype]
    device = "cuda" if torch.cuda.is_available() else "cpu"
    y = torch.empty(shape, dtype=kind, device=device)
    n = shape[0] * shape[1]
    if n > 0:
        start = torch.tensor(starts(t), dtype=torch.float64, device=device)
        pattern_kernel[(triton.cdiv(n, BLOCK),)](y, start, n, shape[1], U8=dtype == "u8", BLOCK=BLOCK)
    return y
# [/color_pattern_triton]


# [color_pattern_numba]
@cuda.jit
def pattern_threads(y, red, green, blue, most, half):
    j, i = cuda.grid(2)
    if i < y.shape[0] and j < y.shape[1]:
        y[i, j, 0] = most * (0.5 + 0.5 * math.sin(0.01 * j + red)) + half
        y[i, j, 1] = most * (0.5 + 0.5 * math.sin(0.01 * i + green)) + half
        y[i, j, 2] = most * (0.5 + 0.5 * math.sin(0.01 * (i + j) + blue)) + half
        y[i, j, 3] = most


@takes(dtypes=("f32", "u8"))
def color_pattern_numba(shape, dtype, t=0):
    y = cuda.device_array(tuple(shape), np.uint8 if dtype == "u8" else np.float32)
    if y.size > 0:
        blocks = ((shape[1] + SIDE - 1) // SIDE, (shape[0] + SIDE - 1) // SIDE)
        most, half = (255, 0.5) if dtype == "u8" else (1, 0)
        pattern_threads[blocks, (SIDE, SIDE)](y, *starts(t), most, half)
    return y
# [/color_pattern_numba]
