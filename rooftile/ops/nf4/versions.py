"""NF4 in four languages: rooftile/ops/languages.py says how these functions are found, run and judged."""

import math
import struct

from languages import np, takes, tl, torch, trap, triton

LEVELS = (-1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635, -0.18477343022823334,
          -0.09105003625154495, 0.0, 0.07958029955625534, 0.16093020141124725, 0.24611230194568634, 0.33791524171829224,
          0.44070982933044434, 0.5626170039176941, 0.7229568362236023, 1.0)
#: Where the upper one of two levels begins, as f32. bitsandbytes' literals have 16 digits, and a C++ compiler rounds them
#: once; Python would round them to f64 first, and then four of them to the neighbouring f32.
THRESHOLDS = (-0.84809643, -0.610632896, -0.45999527, -0.33967942, -0.234607399, -0.137911737, -0.0455250181, 0.0397901498,
              0.120255254, 0.203521252, 0.292013764, 0.389312536, 0.501663387, 0.64278692, 0.861478388)


def f32(value):
    """As a float of 32 bits has it."""
    try:
        return struct.unpack("f", struct.pack("f", value))[0]
    except OverflowError:
        return math.copysign(math.inf, value)


def flat(values):
    return [v for part in values for v in flat(part)] if isinstance(values, list) else [values]


# [quantize_nf4_plain]
def quantize_nf4_plain(x, block=64):
    """Blocks of the flattened tensor; two codes to a byte, the first in the high nibble."""
    values, codes, absmax = flat(x), [], []
    for begin in range(0, len(values), int(block)):
        part = values[begin:begin + int(block)]
        most = max([0.0] + [abs(v) for v in part if not math.isnan(v)])
        absmax.append(most)
        each_one = f32(1 / most) if most else math.inf
        for v in part:
            scaled = f32(v * each_one)  # 0 · inf is a NaN, above no threshold
            codes.append(sum(scaled > f32(t) for t in THRESHOLDS))
    if len(codes) % 2:
        codes.append(7)  # the level 0
    return [16 * a + b for a, b in zip(codes[::2], codes[1::2])], absmax
# [/quantize_nf4_plain]


# [quantize_nf4_numpy]
def quantize_nf4_numpy(x, block=64):
    values, block = x.reshape(-1).astype(np.float32), int(block)
    blocks = -(-values.size // block)
    padded = np.zeros(blocks * block, np.float32)
    padded[:values.size] = values
    padded = padded.reshape(blocks, block)
    absmax = np.fmax.reduce(np.abs(padded), axis=1, initial=0)
    with np.errstate(all="ignore"):
        scaled = (padded * (np.float32(1) / absmax)[:, None]).reshape(-1)[:values.size]
    codes = np.searchsorted(np.float32(THRESHOLDS), scaled, side="left").astype(np.uint8)
    codes[np.isnan(scaled)] = 0
    if codes.size % 2:
        codes = np.append(codes, np.uint8(7))
    return codes[::2] << 4 | codes[1::2], absmax
# [/quantize_nf4_numpy]


# [quantize_nf4_numpy_low_first]
@trap("the first of two elements comes in the low nibble")
def quantize_nf4_numpy_low_first(x, block=64):
    packed, absmax = quantize_nf4_numpy(x, block)
    return packed << 4 | packed >> 4, absmax
# [/quantize_nf4_numpy_low_first]


# [quantize_nf4_torch]
def quantize_nf4_torch(x, block=64):
    values, block = x.reshape(-1).float(), int(block)
    blocks = -(-values.numel() // block)
    padded = values.new_zeros(blocks * block)
    padded[:values.numel()] = values
    padded = padded.reshape(blocks, block)
    absmax = padded.abs().nan_to_num(nan=0.0, posinf=math.inf).amax(1) if blocks else padded.new_zeros(0)
    scaled = (padded * (1 / absmax)[:, None]).reshape(-1)[:values.numel()]
    codes = sum((scaled > f32(t)).to(torch.uint8) for t in THRESHOLDS)
    if codes.numel() % 2:
        codes = torch.cat([codes, codes.new_full((1,), 7)])
    return codes[::2] << 4 | codes[1::2], absmax
# [/quantize_nf4_torch]


# [quantize_nf4_triton]
@triton.jit
def largest_kernel(x, absmax, n, block, SIZE: tl.constexpr):
    """One program, the largest magnitude of a block; a NaN is none."""
    begin, k = tl.program_id(0).to(tl.int64) * block, tl.arange(0, SIZE)
    size = tl.abs(tl.load(x + begin + k, mask=(k < block) & (begin + k < n), other=0.0).to(tl.float32))
    tl.store(absmax + tl.program_id(0), tl.max(tl.where(size == size, size, 0.0), 0))


@triton.jit
def codes_kernel(x, absmax, packed, thresholds, n, block, BYTES: tl.constexpr):
    """One program, BYTES bytes of two codes each: a code is how many thresholds a scaled element exceeds."""
    byte = tl.program_id(0).to(tl.int64) * BYTES + tl.arange(0, BYTES)
    element = 2 * byte[:, None] + tl.arange(0, 2)[None, :]
    value = tl.load(x + element, mask=element < n, other=0.0).to(tl.float32)
    most = tl.load(absmax + element // block, mask=element < n, other=1.0)
    scaled = value * tl.div_rn(1.0, most)  # 0 · inf is a NaN, above no threshold
    code = tl.zeros((BYTES, 2), tl.int32)
    for k in range(15):
        code += (scaled > tl.load(thresholds + k)).to(tl.int32)
    code = tl.where(element < n, code, 7)  # past the end the level 0
    code = tl.sum(code << (4 - 4 * tl.arange(0, 2))[None, :], 1)
    tl.store(packed + byte, code.to(tl.uint8), mask=2 * byte < n)


def quantize_nf4_triton(x, block=64):
    n, block = x.numel(), int(block)
    blocks, size = triton.cdiv(n, block), triton.cdiv(n, 2)
    packed, absmax = x.new_empty(size, dtype=torch.uint8), x.new_empty(blocks, dtype=torch.float32)
    if n > 0:
        thresholds = torch.tensor(THRESHOLDS, dtype=torch.float32, device=x.device)
        largest_kernel[(blocks,)](x, absmax, n, block, SIZE=triton.next_power_of_2(block))
        codes_kernel[(triton.cdiv(size, 256),)](x, absmax, packed, thresholds, n, block, BYTES=256)
    return packed, absmax
# [/quantize_nf4_triton]


# [gemm_nf4_plain]
@takes(dtypes=("f32", "u8"))
def gemm_nf4_plain(x, packed, absmax, bias, block=64):
    """Weight n·K + k of the flattened tensor is in byte (n·K + k) / 2 and has the scale of block (n·K + k) / block."""
    y = []
    for matrix in x:
        lines = []
        for row in matrix:
            line = []
            for n in range(len(bias)):
                total = 0.0
                for k, value in enumerate(row):
                    at = n * len(row) + k
                    code = packed[at // 2] >> (0 if at % 2 else 4) & 15
                    total += value * f32(LEVELS[code] * absmax[at // int(block)])
                line.append(total + bias[n])
            lines.append(line)
        y.append(lines)
    return y
# [/gemm_nf4_plain]


# [gemm_nf4_numpy]
def weights(packed, absmax, rows, columns, block):
    """The weight's rows in f32; scales count in the flattened tensor."""
    codes = np.stack([packed >> 4, packed & 15], axis=1).reshape(-1)[:rows * columns]
    with np.errstate(all="ignore"):
        return (np.float32(LEVELS)[codes] * absmax[np.arange(codes.size) // int(block)]).reshape(rows, columns)


def product(x, w, bias):
    with np.errstate(all="ignore"):
        return (x.astype(np.float64) @ w.astype(x.dtype).astype(np.float64).T + bias).astype(x.dtype)


def gemm_nf4_numpy(x, packed, absmax, bias, block=64):
    return product(x, weights(packed, absmax, bias.size, x.shape[-1], block), bias)
# [/gemm_nf4_numpy]


# [gemm_nf4_numpy_low_first]
@trap("the first of two weights comes in the low nibble")
def gemm_nf4_numpy_low_first(x, packed, absmax, bias, block=64):
    return gemm_nf4_numpy(x, packed << 4 | packed >> 4, absmax, bias, block)
# [/gemm_nf4_numpy_low_first]


# [gemm_nf4_numpy_next_scale]
@trap("each weight has the scale of the block after its own")
def gemm_nf4_numpy_next_scale(x, packed, absmax, bias, block=64):
    return gemm_nf4_numpy(x, packed, np.roll(absmax, -1), bias, block)
# [/gemm_nf4_numpy_next_scale]


# [gemm_nf4_numpy_f32_weights]
@trap("weights are not rounded to x's dtype")
def gemm_nf4_numpy_f32_weights(x, packed, absmax, bias, block=64):
    w = weights(packed, absmax, bias.size, x.shape[-1], block)
    with np.errstate(all="ignore"):
        return (x.astype(np.float64) @ w.astype(np.float64).T + bias).astype(x.dtype)
# [/gemm_nf4_numpy_f32_weights]


# [gemm_nf4_numpy_tail]
@trap("the last column of x is not multiplied")
def gemm_nf4_numpy_tail(x, packed, absmax, bias, block=64):
    w = weights(packed, absmax, bias.size, x.shape[-1], block)
    return product(x[..., :-1], w[:, :-1], bias)
# [/gemm_nf4_numpy_tail]


# [gemm_nf4_numpy_no_bias]
@trap("the bias is not added")
def gemm_nf4_numpy_no_bias(x, packed, absmax, bias, block=64):
    return gemm_nf4_numpy(x, packed, absmax, np.zeros_like(bias), block)
# [/gemm_nf4_numpy_no_bias]


# [gemm_nf4_torch]
def gemm_nf4_torch(x, packed, absmax, bias, block=64):
    rows, columns = bias.numel(), x.shape[-1]
    codes = torch.stack([packed >> 4, packed & 15], 1).reshape(-1)[:rows * columns].long()
    scales = absmax[torch.arange(codes.numel(), device=x.device) // int(block)]
    w = (torch.tensor(LEVELS, dtype=torch.float32, device=x.device)[codes] * scales).reshape(rows, columns).to(x.dtype)
    return (x.double() @ w.double().mT + bias.double()).to(x.dtype)
# [/gemm_nf4_torch]


# [gemm_nf4_triton]
@triton.jit
def gemm_nf4_kernel(x, packed, absmax, levels, bias, y, m, n, depth, block,
                    ROWS: tl.constexpr, COLUMNS: tl.constexpr, DEPTH: tl.constexpr):
    """One program, one tile of y; the tile of weights is dequantised in registers."""
    i = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    j = tl.program_id(1).to(tl.int64) * COLUMNS + tl.arange(0, COLUMNS)
    total = tl.zeros((ROWS, COLUMNS), tl.float32)
    for start in range(0, depth, DEPTH):
        k = start + tl.arange(0, DEPTH)
        left = tl.load(x + i[:, None] * depth + k[None, :], mask=(i < m)[:, None] & (k < depth)[None, :], other=0.0)
        at = j[None, :] * depth + k[:, None]
        inside = (k < depth)[:, None] & (j < n)[None, :]
        code = tl.load(packed + at // 2, mask=inside, other=0).to(tl.int32) >> (4 - 4 * (at % 2)).to(tl.int32) & 15
        right = tl.load(levels + code) * tl.load(absmax + at // block, mask=inside, other=0.0)
        total = tl.dot(left, right.to(left.dtype), total, input_precision="ieee")
    total += tl.load(bias + j, mask=j < n, other=0.0).to(tl.float32)[None, :]
    tl.store(y + i[:, None] * n + j[None, :], total.to(y.dtype.element_ty), mask=(i < m)[:, None] & (j < n)[None, :])


def gemm_nf4_triton(x, packed, absmax, bias, block=64):
    depth, n = x.shape[-1], bias.numel()
    m = x.shape[:-1].numel()
    y = x.new_empty((*x.shape[:-1], n))
    if y.numel() > 0:
        levels = torch.tensor(LEVELS, dtype=torch.float32, device=x.device)
        grid = (triton.cdiv(m, 16), triton.cdiv(n, 64))
        gemm_nf4_kernel[grid](x, packed, absmax, levels, bias, y, m, n, depth, int(block), ROWS=16, COLUMNS=64, DEPTH=32)
    return y
# [/gemm_nf4_triton]
