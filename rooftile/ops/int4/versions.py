"""4-bit groups in four languages: rooftile/ops/languages.py says how these functions are found, run and judged."""

import math
import struct

from languages import np, takes, tl, torch, trap, triton


def f32(value):
    """As a float of 32 bits has it."""
    try:
        return struct.unpack("f", struct.pack("f", value))[0]
    except OverflowError:
        return math.copysign(math.inf, value)


# [gemm_int4_plain]
@takes(dtypes=("f32", "u8"))
def gemm_int4_plain(x, packed, scales, zeros=None, bias=None, group=128):
    """Weight k of a row is in its byte k / 2, an even one in the low nibble, and has the scale of group k / group."""
    y = []
    for matrix in x:
        lines = []
        for row in matrix:
            line = []
            for n, codes in enumerate(packed):
                total = 0.0
                for k, value in enumerate(row):
                    g = k // int(group)
                    code = codes[k // 2] >> (4 if k % 2 else 0) & 15
                    total += value * f32((code - (zeros[n][g] if zeros else 8)) * scales[n][g])
                line.append(total + (bias[n] if bias else 0))
            lines.append(line)
        y.append(lines)
    return y
# [/gemm_int4_plain]


# [quantize_int4_numpy]
@takes(only={"S": 0})
def quantize_int4_numpy(x, group=128):
    """Symmetric: codes around 8, no zeros, scales in f32."""
    k, group = x.shape[-1], int(group)
    groups = -(-k // group)
    padded = np.zeros((*x.shape[:-1], groups * group), np.float32)
    padded[..., :k] = x
    padded = padded.reshape(*x.shape[:-1], groups, group)
    with np.errstate(all="ignore"):
        scales = np.abs(padded).max(-1, initial=0) / np.float32(7)
        scales[~np.isfinite(padded).all(-1)] = np.nan
        steps = np.nan_to_num(np.rint(padded / scales[..., None]), nan=0, posinf=16, neginf=-16)
    codes = np.clip(steps + 8, 0, 15).astype(np.uint8).reshape(*x.shape[:-1], groups * group)[..., :k]
    if k % 2:
        codes = np.concatenate([codes, np.zeros((*x.shape[:-1], 1), np.uint8)], -1)
    return codes[..., ::2] | codes[..., 1::2] << 4, scales, None
# [/quantize_int4_numpy]


# [gemm_int4_numpy]
def weights(packed, scales, zeros, k, group):
    """(N, K) in f32."""
    codes = np.stack([packed & 15, packed >> 4], axis=-1).reshape(len(packed), 2 * packed.shape[1])[:, :k].astype(np.float32)
    groups = np.arange(k) // int(group)
    zero = np.float32(8) if zeros is None else zeros.astype(np.float32)[:, groups]
    with np.errstate(all="ignore"):
        return (codes - zero) * scales.astype(np.float32)[:, groups]


def gemm_int4_numpy(x, packed, scales, zeros=None, bias=None, group=128):
    w = weights(packed, scales, zeros, x.shape[-1], group)
    with np.errstate(all="ignore"):
        y = x.astype(np.float64) @ w.astype(x.dtype).astype(np.float64).T
        return (y if bias is None else y + bias).astype(x.dtype)
# [/gemm_int4_numpy]


# [gemm_int4_numpy_high_first]
@trap("the first of two codes is taken from the high nibble")
def gemm_int4_numpy_high_first(x, packed, scales, zeros=None, bias=None, group=128):
    return gemm_int4_numpy(x, packed << 4 | packed >> 4, scales, zeros, bias, group)
# [/gemm_int4_numpy_high_first]


# [gemm_int4_numpy_zero_less_one]
@trap("zeros are taken as GPTQ stores them, less 1")
def gemm_int4_numpy_zero_less_one(x, packed, scales, zeros=None, bias=None, group=128):
    return gemm_int4_numpy(x, packed, scales, None if zeros is None else zeros.astype(np.float32) + 1, bias, group)
# [/gemm_int4_numpy_zero_less_one]


# [gemm_int4_torch]
def gemm_int4_torch(x, packed, scales, zeros=None, bias=None, group=128):
    n, k = len(packed), x.shape[-1]
    codes = torch.stack([packed & 15, packed >> 4], -1).reshape(n, 2 * packed.shape[1])[:, :k].float()
    groups = torch.arange(k, device=x.device) // int(group)
    zero = 8 if zeros is None else zeros.float()[:, groups]
    w = ((codes - zero) * scales.float()[:, groups]).to(x.dtype)
    y = x.double() @ w.double().mT
    return (y if bias is None else y + bias.double()).to(x.dtype)
# [/gemm_int4_torch]


# [gemm_int4_triton]
@triton.jit
def gemm_int4_kernel(x, packed, scales, zeros, bias, y, m, n, depth, bytes_, groups, group, HAS_ZEROS: tl.constexpr,
                     HAS_BIAS: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr, DEPTH: tl.constexpr):
    """One program, one tile of y; the tile of weights is dequantised in registers."""
    i = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    j = tl.program_id(1).to(tl.int64) * COLUMNS + tl.arange(0, COLUMNS)
    total = tl.zeros((ROWS, COLUMNS), tl.float32)
    for start in range(0, depth, DEPTH):
        k = start + tl.arange(0, DEPTH)
        left = tl.load(x + i[:, None] * depth + k[None, :], mask=(i < m)[:, None] & (k < depth)[None, :], other=0.0)
        inside = (k < depth)[:, None] & (j < n)[None, :]
        byte = tl.load(packed + j[None, :] * bytes_ + (k // 2)[:, None], mask=inside, other=0).to(tl.int32)
        code = byte >> (4 * (k % 2))[:, None].to(tl.int32) & 15
        at = j[None, :] * groups + (k // group)[:, None]
        zero = tl.load(zeros + at, mask=inside, other=0).to(tl.float32) if HAS_ZEROS else 8.0
        scale = tl.load(scales + at, mask=inside, other=0.0).to(tl.float32)
        total = tl.dot(left, ((code.to(tl.float32) - zero) * scale).to(left.dtype), total, input_precision="ieee")
    if HAS_BIAS:
        total += tl.load(bias + j, mask=j < n, other=0.0).to(tl.float32)[None, :]
    tl.store(y + i[:, None] * n + j[None, :], total.to(y.dtype.element_ty), mask=(i < m)[:, None] & (j < n)[None, :])


def gemm_int4_triton(x, packed, scales, zeros=None, bias=None, group=128):
    depth, n, m = x.shape[-1], len(packed), x.shape[:-1].numel()
    y = x.new_empty((*x.shape[:-1], n))
    if y.numel() > 0:
        grid = (triton.cdiv(m, 16), triton.cdiv(n, 64))
        gemm_int4_kernel[grid](x, packed, scales, zeros, bias, y, m, n, depth, packed.shape[1], scales.shape[1], int(group),
                               HAS_ZEROS=zeros is not None, HAS_BIAS=bias is not None, ROWS=16, COLUMNS=64, DEPTH=32)
    return y
# [/gemm_int4_triton]
