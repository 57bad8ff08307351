"""Codes of 8 bits in four languages: rooftile/ops/languages.py says how these functions are found, run and judged."""

import math
import struct

from languages import np, takes, tl, torch, trap, triton

F8 = ("f8e4m3", "f8e5m2", "i8")


def f32(value):
    """As a float of 32 bits has it."""
    try:
        return struct.unpack("f", struct.pack("f", value))[0]
    except OverflowError:
        return math.copysign(math.inf, value)


# [philox_plain]
FACTORS, STEPS, LOW = (0xD2511F53, 0xCD9E8D57), (0x9E3779B9, 0xBB67AE85), 0xFFFFFFFF


def philox_plain(counter, seed):
    """Four words of 32 bits, as dropout's."""
    a, b, c, d = counter & LOW, counter >> 32 & LOW, 0, 0
    key, key2 = seed & LOW, seed >> 32 & LOW
    for _ in range(10):
        first, second = FACTORS[0] * a, FACTORS[1] * c
        a, b, c, d = second >> 32 ^ b ^ key, second & LOW, first >> 32 ^ d ^ key2, first & LOW
        key, key2 = key + STEPS[0] & LOW, key2 + STEPS[1] & LOW
    return a, b, c, d


def words_plain(seed, offset):
    """The word of element i, or None without a seed."""
    if not seed:
        return lambda i: None
    first = int(offset[0]) if offset else 0
    return lambda i: philox_plain(first + i // 4, int(seed[0]))[i % 4]
# [/philox_plain]


# [quantize_plain]
def beside(steps, word):
    """The whole number nearest to steps, or, with a random word, one of the two beside it."""
    if word is None:
        return round(steps)
    lower = math.floor(steps)
    return lower + (math.floor((steps - lower) * 2**31) + word // 2 >= 2**31)


def code_f8(value, word, mantissa, smallest_exponent, largest):
    """Numbers of a binade are multiples of 2^(exponent - mantissa); round() takes the even one of two."""
    if math.isnan(value):
        return math.nan  # without a sign
    if value == 0 or math.isinf(value):
        return math.copysign(min(abs(value), largest), value)
    size = min(abs(value), largest)
    step = 2.0 ** (max(math.frexp(size)[1] - 1, smallest_exponent) - mantissa)
    return math.copysign(min(beside(size / step, word) * step, largest), value)


def code_i8(value, word):
    return 0 if math.isnan(value) else int(math.copysign(beside(min(abs(value), 127), word), value))


def quantize_rows(x, given, seed, offset, block, largest, code):
    codes, scales, block, word = [], [], int(block), words_plain(seed, offset)
    for r, row in enumerate(x):
        codes.append([])
        scales.append([])
        for b, begin in enumerate(range(0, len(row), block)):
            part = row[begin:begin + block]
            most = math.nan if any(map(math.isnan, part)) else max(map(abs, part))
            scale = given[r][b] if given else most if math.isnan(most) else max(f32(most / largest), 2.0**-126)
            scales[-1].append(scale)
            each_one = f32(1 / scale) if scale else math.copysign(math.inf, scale)
            first = r * len(row) + begin
            codes[-1] += [code(f32(v * each_one), word(first + i)) for i, v in enumerate(part)]
    return codes, scales


def quantize_f8e4m3_plain(x, given=None, seed=None, offset=None, block=128):
    return quantize_rows(x, given, seed, offset, block, 448, lambda v, word: code_f8(v, word, 3, -6, 448))


def quantize_f8e5m2_plain(x, given=None, seed=None, offset=None, block=128):
    return quantize_rows(x, given, seed, offset, block, 57344, lambda v, word: code_f8(v, word, 2, -14, 57344))


def quantize_i8_plain(x, given=None, seed=None, offset=None, block=128):
    return quantize_rows(x, given, seed, offset, block, 127, code_i8)
# [/quantize_plain]


# [quantize_tensor_plain]
def tensor(quantize):
    """A tensor, flat, is one row with one block."""

    def quantize_tensor(x, seed=None, offset=None):
        codes, scales = quantize([x], None, seed, offset, max(len(x), 1))
        return codes[0], scales[0] or [2.0**-126]

    return quantize_tensor


quantize_tensor_f8e4m3_plain = tensor(quantize_f8e4m3_plain)
quantize_tensor_f8e5m2_plain = tensor(quantize_f8e5m2_plain)
quantize_tensor_i8_plain = tensor(quantize_i8_plain)
# [/quantize_tensor_plain]


# [quantize_i8_plain_rows]
@trap("each row counts its elements from 0: all rows draw the same words, and their errors no longer cancel")
def quantize_i8_plain_rows(x, given=None, seed=None, offset=None, block=128):
    rows = [quantize_i8_plain([row], given and [given[r]], seed, offset, block) for r, row in enumerate(x)]
    return [codes[0] for codes, _ in rows], [scales[0] for _, scales in rows]
# [/quantize_i8_plain_rows]


# [quantize_f8e4m3_plain_infinite]
@trap("beyond 448 comes NaN, as float8_e4m3fn's own conversion has it: with given scales values must saturate")
def quantize_f8e4m3_plain_infinite(x, given=None, seed=None, offset=None, block=128):
    beyond = lambda v, word: math.nan if abs(v) > 464 else code_f8(v, word, 3, -6, 448)  # noqa: E731
    return quantize_rows(x, given, seed, offset, block, 448, beyond)
# [/quantize_f8e4m3_plain_infinite]


# [quantize_i8_numpy]
def blocks_numpy(x, block):
    """{…, B, block} in f32, the last block filled up with zeros."""
    blocks = -(-x.shape[-1] // block)
    padded = np.zeros((*x.shape[:-1], blocks * block), np.float32)
    padded[..., :x.shape[-1]] = x
    return padded.reshape(*x.shape[:-1], blocks, block)


def quantize_i8_numpy(x, given=None, block=128):
    parts = blocks_numpy(x, min(int(block), max(x.shape[-1], 1)))
    scale = np.maximum(np.abs(parts).max(-1) / np.float32(127), np.float32(2.0**-126)) if given is None else given
    with np.errstate(all="ignore"):
        products = parts * (np.float32(1) / scale)[..., None]
    codes = np.rint(np.clip(np.nan_to_num(products, posinf=np.inf, neginf=-np.inf), -127, 127)).astype(np.int8)
    return codes.reshape(*x.shape[:-1], -1)[..., :x.shape[-1]], scale
# [/quantize_i8_numpy]


# [quantize_i8_numpy_truncated]
@trap("a cast cuts toward zero, and does not round")
def quantize_i8_numpy_truncated(x, given=None, block=128):
    parts = blocks_numpy(x, min(int(block), max(x.shape[-1], 1)))
    codes, scale = quantize_i8_numpy(x, given, block)
    with np.errstate(all="ignore"):
        products = np.nan_to_num(parts * (np.float32(1) / scale)[..., None], posinf=np.inf, neginf=-np.inf)
    cut = np.clip(products, -127, 127).astype(np.int8)
    return cut.reshape(*x.shape[:-1], -1)[..., :x.shape[-1]], scale
# [/quantize_i8_numpy_truncated]


# [quantize_tensor_i8_numpy]
def quantize_tensor_i8_numpy(x):
    codes, scale = quantize_i8_numpy(x.reshape(1, -1), block=max(x.size, 1))
    return codes.reshape(x.shape), scale if x.size else np.full(1, 2.0**-126, np.float32)
# [/quantize_tensor_i8_numpy]


# [dequantize_numpy]
@takes(dtypes=("f32", "i8"))
def dequantize_numpy(codes, scale, block=128):
    each = np.repeat(scale, min(int(block), max(codes.shape[-1], 1)), axis=-1)[..., :codes.shape[-1]]
    return codes.astype(np.float32) * each
# [/dequantize_numpy]


# [quantize_torch]
def quantize_blocks_torch(x, given, block, largest):
    """x · (1 / scale) in f32, and the scales."""
    columns = x.shape[-1]
    block = min(int(block), max(columns, 1))
    blocks = -(-columns // block)
    padded = torch.nn.functional.pad(x.float(), (0, blocks * block - columns)).unflatten(-1, (blocks, block))
    scale = given
    if scale is None:
        scale = (padded.abs().amax(-1) / largest).clamp(min=2.0**-126)
    products = (padded * (1 / scale)[..., None]).flatten(-2)[..., :columns]
    return products.clamp(-largest, largest), scale


def quantize_f8e4m3_torch(x, given=None, block=128):
    products, scale = quantize_blocks_torch(x, given, block, 448.0)
    return products.to(torch.float8_e4m3fn), scale


def quantize_f8e5m2_torch(x, given=None, block=128):
    products, scale = quantize_blocks_torch(x, given, block, 57344.0)
    return products.to(torch.float8_e5m2), scale


def quantize_i8_torch(x, given=None, block=128):
    products, scale = quantize_blocks_torch(x, given, block, 127.0)
    return products.nan_to_num(nan=0.0).round().to(torch.int8), scale
# [/quantize_torch]


# [quantize_tensor_torch]
def quantize_tensor_torch(x, largest):
    amax = x.abs().amax() if x.numel() else torch.zeros((), device=x.device)
    scale = (amax.float() / largest).clamp(min=2.0**-126)
    return (x.float() * (1 / scale)).clamp(-largest, largest), scale


def quantize_tensor_f8e4m3_torch(x):
    products, scale = quantize_tensor_torch(x, 448.0)
    return products.to(torch.float8_e4m3fn), scale


def quantize_tensor_f8e5m2_torch(x):
    products, scale = quantize_tensor_torch(x, 57344.0)
    return products.to(torch.float8_e5m2), scale


def quantize_tensor_i8_torch(x):
    products, scale = quantize_tensor_torch(x, 127.0)
    return products.nan_to_num(nan=0.0).round().to(torch.int8), scale
# [/quantize_tensor_torch]


# [dequantize_torch]
@takes(dtypes=("f32", *F8))
def dequantize_torch(codes, scale, block=128):
    block = min(int(block), max(codes.shape[-1], 1))
    return codes.float() * scale.repeat_interleave(block, -1)[..., :codes.shape[-1]]
# [/dequantize_torch]


# [fake_quantize_torch]
def fake_quantize_torch(x, given=None, block=128, format=0):
    quantize = (quantize_f8e4m3_torch, quantize_f8e5m2_torch, quantize_i8_torch)[int(format)]
    return dequantize_torch(*quantize(x, given, block), block).to(x.dtype)


def fake_quantize_backward_torch(x, dy, given=None, block=128, format=0):
    """Straight through, but where a product rounds beyond the largest: half a step above it."""
    if given is None:
        return dy
    largest, step = ((448, 32), (57344, 8192), (127, 1))[int(format)]
    each = (1 / given).repeat_interleave(min(int(block), max(x.shape[-1], 1)), -1)[..., :x.shape[-1]]
    within = torch.round((x.float() * each).abs() / step) * step <= largest
    return torch.where(within, dy, 0)
# [/fake_quantize_torch]


# [fake_quantize_backward_torch_everywhere]
@trap("the gradient passes where values were clamped, too")
def fake_quantize_backward_torch_everywhere(x, dy, given=None, block=128, format=0):
    return dy
# [/fake_quantize_backward_torch_everywhere]


# [quantize_i8_triton]
@triton.jit
def quantize_kernel(x, codes, scales, columns, blocks, block, SIZE: tl.constexpr):
    """One program, one block of a row."""
    program = tl.program_id(0).to(tl.int64)
    row, first = program // blocks, program % blocks * block
    at = first + tl.arange(0, SIZE)
    there = (tl.arange(0, SIZE) < block) & (at < columns)
    values = tl.load(x + row * columns + at, mask=there, other=0.0).to(tl.float32)
    # As integers magnitudes have the same order, and a NaN is above all.
    most = tl.max(tl.abs(values).to(tl.int32, bitcast=True)).to(tl.float32, bitcast=True)
    scale = tl.div_rn(most, 127.0)
    scale = tl.where(scale < 1.1754943508222875e-38, 1.1754943508222875e-38, scale)
    tl.store(scales + program, scale)
    products = values * tl.div_rn(1.0, scale)
    products = tl.where(products == products, products, 0.0)
    bound = tl.minimum(tl.maximum(products, -127.0), 127.0)
    tl.store(codes + row * columns + at, ((bound + 12582912.0) - 12582912.0).to(tl.int8), mask=there)


def quantize_i8_triton(x, block=128):
    columns = x.shape[-1]
    block = min(int(block), max(columns, 1))
    blocks = -(-columns // block)
    codes = torch.empty(x.shape, dtype=torch.int8, device=x.device)
    scales = torch.empty((*x.shape[:-1], blocks), dtype=torch.float32, device=x.device)
    if scales.numel():
        quantize_kernel[(scales.numel(),)](x, codes, scales, columns, blocks, block, SIZE=triton.next_power_of_2(block))
    return codes, scales
# [/quantize_i8_triton]


# [quantize_tensor_triton]
@triton.jit
def largest_kernel(x, largest, size, SIZE: tl.constexpr):
    """The largest magnitude, as an integer: a maximum is the same in any order, and a NaN is above all."""
    at = tl.program_id(0).to(tl.int64) * SIZE + tl.arange(0, SIZE)
    values = tl.load(x + at, mask=at < size, other=0.0).to(tl.float32)
    tl.atomic_max(largest, tl.max(tl.abs(values).to(tl.int32, bitcast=True)))


@triton.jit
def quantize_tensor_kernel(x, codes, scale, largest, size, BOUND: tl.constexpr, BITS: tl.constexpr, LEAST: tl.constexpr,
                           FORMAT: tl.constexpr, SIZE: tl.constexpr):
    """To BITS behind the leading one of a value, whose exponent counts as LEAST at least; of 0 BITS, to whole numbers."""
    at = tl.program_id(0).to(tl.int64) * SIZE + tl.arange(0, SIZE)
    its = tl.div_rn(tl.load(largest).to(tl.float32, bitcast=True), BOUND)
    its = tl.where(its < 1.1754943508222875e-38, 1.1754943508222875e-38, its)
    tl.store(scale, its, mask=tl.program_id(0) == 0)
    values = tl.load(x + at, mask=at < size, other=0.0).to(tl.float32) * tl.div_rn(1.0, its)
    values = tl.where(values > BOUND, BOUND, tl.where(values < -BOUND, -BOUND, values))
    if BITS == 0:
        values = tl.where(values == values, values, 0.0)
        values = (values + 12582912.0) - 12582912.0
    else:  # the distance of two codes is a power of two, so only the sum rounds
        bits = values.to(tl.int32, bitcast=True)
        exponent = ((bits >> 23) & 255) - 127
        step = ((tl.where(exponent > LEAST, exponent, LEAST) - BITS + 127) << 23).to(tl.float32, bitcast=True)
        rounded = ((tl.div_rn(values, step) + 12582912.0) - 12582912.0) * step
        values = tl.where(rounded == 0.0, (bits & -2147483648).to(tl.float32, bitcast=True), rounded)  # -0 keeps its sign
    code = values.to(FORMAT).to(tl.uint8, bitcast=True)
    tl.store(codes + at, tl.where(values == values, code, 0x7F), mask=at < size)  # the interpreter makes 384 of a NaN


def quantize_tensor_triton(x, dtype, format, bound, bits, least):
    codes = torch.empty(x.shape, dtype=torch.uint8, device=x.device)
    scale = torch.full((1,), 2.0**-126, device=x.device)
    largest = torch.zeros(1, dtype=torch.int32, device=x.device)
    if x.numel():
        grid = (triton.cdiv(x.numel(), 1024),)
        largest_kernel[grid](x, largest, x.numel(), SIZE=1024)
        quantize_tensor_kernel[grid](x, codes, scale, largest, x.numel(), BOUND=bound, BITS=bits, LEAST=least, FORMAT=format,
                                     SIZE=1024)
    return codes.view(dtype), scale


def quantize_tensor_f8e4m3_triton(x):
    return quantize_tensor_triton(x, torch.float8_e4m3fn, tl.float8e4nv, 448.0, 3, -6)


def quantize_tensor_f8e5m2_triton(x):
    return quantize_tensor_triton(x, torch.float8_e5m2, tl.float8e5, 57344.0, 2, -14)


def quantize_tensor_i8_triton(x):
    return quantize_tensor_triton(x, torch.int8, tl.int8, 127.0, 0, 0)
# [/quantize_tensor_triton]
