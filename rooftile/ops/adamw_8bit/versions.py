"""AdamW with means of 8 bits in four languages: rooftile/ops/languages.py says how these functions are found, run and judged.

Each makes one step of one parameter, and gives the new parameter, m, v, master, m_absmax, v_absmax and step counter: None for one
that is absent. Every operation is rounded to f32, in the library's order: one last bit can decide a code.
"""

import math
from bisect import bisect_left
from ctypes import c_float

from languages import np, tl, torch, trap, triton


# [adamw_8bit_plain]
def f32(x):
    return c_float(x).value


def dynamic_map(with_signs):
    numbers, unit = [], 1e-6
    for decade in range(7):
        steps = (1 if with_signs else 2) << decade
        numbers += [f32((0.1 + 0.9 * (i + 0.5) / steps) * unit) for i in range(steps)]
        unit *= 10
    return [-x for x in reversed(numbers) if with_signs] + [0.0] + numbers + [1.0]


def thresholds(numbers):
    """What exceeds the i-th has a code beyond i; what is negative has a negative number."""
    middles = [f32(a + b) * 0.5 for a, b in zip(numbers, numbers[1:])]
    return [-(2.0**-149) if b == 0 else t for b, t in zip(numbers[1:], middles)]


MAPS = [dynamic_map(True), dynamic_map(False)]
ABOVE = [thresholds(numbers) for numbers in MAPS]


def power(beta, t):
    """By squaring, as the library has it."""
    result = 1.0
    while t > 0:
        result, t, beta = result * beta if t % 2 else result, t // 2, beta * beta
    return result


def of_step(t, lr, beta1, beta2, eps, weight_decay):
    return [f32(x) for x in (lr * weight_decay, lr / (1 - power(beta1, t)), 1 / math.sqrt(1 - power(beta2, t)), eps)]


def moved(mean, beta, x, f32=f32):
    if f32(1 - beta) < 0.5:
        return f32(mean + f32(f32(x - mean) * f32(1 - beta)))
    return f32(x + f32(f32(mean - x) * f32(beta)))


def adamw_8bit_plain(parameter, gradient, m, v, m_absmax, v_absmax, steps, gradient_scale=(1.0,), found_inf=(0.0,), lr=1e-3, beta1=0.9,
                     beta2=0.999, eps=1e-8, weight_decay=0.01):
    if found_inf[0] != 0:
        return parameter, m, v, None, m_absmax, v_absmax, steps
    decay, size, root_factor, eps = of_step(steps[0] + 1, lr, beta1, beta2, eps, weight_decay)
    ps, codes, absmax = [], ([], []), ([], [])
    for begin in range(0, len(parameter), 256):
        means = ([], [])
        for p, g, *its in list(zip(parameter, gradient, m, v))[begin:begin + 256]:
            g = f32(g * gradient_scale[0])
            before = [f32(MAPS[o][its[o]] * (m_absmax, v_absmax)[o][begin // 256]) for o in (0, 1)]
            mean, square = moved(before[0], beta1, g), moved(before[1], beta2, f32(g * g))
            if math.isfinite(mean) and math.isfinite(square):
                divisor = f32(f32(f32(math.sqrt(square)) * root_factor) + eps)
                step = f32(f32(mean * size) / divisor) if divisor else math.nan if mean == 0 else math.copysign(math.inf, mean)
                p = f32(p - f32(f32(p * decay) + step))
            else:
                mean = square = 0.0
            ps.append(p)
            means[0].append(mean)
            means[1].append(square)
        for o in (0, 1):
            most = max(map(abs, means[o]))
            absmax[o].append(most)
            codes[o].extend(bisect_left(ABOVE[o], f32(x / most) if most else 0.0) for x in means[o])
    return ps, *codes, None, *absmax, [steps[0] + 1]
# [/adamw_8bit_plain]


# [adamw_8bit_numpy]
def blocks(x, fill, dtype):
    """In row-major order, 256 to a row; `fill` behind the last."""
    x = x.reshape(-1).astype(dtype)
    return np.pad(x, (0, -x.size % 256), constant_values=fill).reshape(-1, 256)


def adamw_8bit_numpy(parameter, gradient, m, v, m_absmax, v_absmax, master=None, steps=None, gradient_scale=None, found_inf=None, lr=1e-3,
                     beta1=0.9, beta2=0.999, eps=1e-8, weight_decay=0.01, maximize=False, step=0, exact=True):
    if found_inf is not None and found_inf.flat[0] != 0:
        return parameter, m, v, master, m_absmax, v_absmax, steps
    real, count = np.float32 if exact else np.float64, parameter.size
    decay, size, root_factor, eps = (real(x) for x in of_step(int(step if steps is None else steps.flat[0] + 1), lr, beta1, beta2, eps,
                                                              weight_decay))
    with np.errstate(all="ignore"):
        scale = 1.0 if gradient_scale is None else float(gradient_scale.flat[0])
        g = blocks(gradient, 0, real) * real(-scale if maximize else scale)
        p = blocks(parameter if master is None else master, 0, real)
        numbers = [np.array(MAPS[o], np.float32)[blocks(c, zero, np.uint8)].astype(real) for o, c, zero in ((0, m, 127), (1, v, 0))]
        mean = moved(numbers[0] * m_absmax.reshape(-1, 1).astype(real), beta1, g, real)
        square = moved(numbers[1] * v_absmax.reshape(-1, 1).astype(real), beta2, g * g, real)
        new = p - (p * decay + mean * size / (np.sqrt(square) * root_factor + eps))
        finite = np.isfinite(mean) & np.isfinite(square)
        new, mean, square = np.where(finite, new, p), np.where(finite, mean, real(0)), np.where(finite, square, real(0))
        codes, absmax = [], []
        for above, x in zip(ABOVE, (mean, square)):
            most = np.abs(x).max(axis=1, initial=0)
            x = np.where(most[:, None] > 0, x / most[:, None], real(0)).astype(np.float32)
            codes.append(np.searchsorted(np.array(above, np.float32), x).astype(np.uint8).reshape(-1)[:count].reshape(parameter.shape))
            absmax.append(most.astype(np.float32))
    new = new.reshape(-1)[:count].reshape(parameter.shape)
    return (new.astype(parameter.dtype), *codes, None if master is None else new.astype(np.float32), *absmax,
            None if steps is None else steps + 1)
# [/adamw_8bit_numpy]


# [adamw_8bit_torch]
def adamw_8bit_torch(parameter, gradient, m, v, m_absmax, v_absmax, master=None, steps=None, lr=1e-3, beta1=0.9, beta2=0.999, eps=1e-8,
                     weight_decay=0.01):
    device, count = parameter.device, parameter.numel()
    real = lambda x: torch.as_tensor(x, dtype=torch.float32, device=device)  # noqa: E731
    row = lambda x, fill: torch.nn.functional.pad(x.reshape(-1), (0, -count % 256), value=fill).reshape(-1, 256)  # noqa: E731
    decay, size, root_factor, eps = map(real, of_step(int(steps) + 1, lr, beta1, beta2, eps, weight_decay))
    g, p = row(gradient, 0).float(), row(parameter if master is None else master, 0).float()
    before = [real(MAPS[o])[row(c, zero).long()] * a.reshape(-1, 1) for o, c, zero, a in ((0, m, 127, m_absmax), (1, v, 0, v_absmax))]
    mean, square = moved(before[0], beta1, g, real), moved(before[1], beta2, g * g, real)
    root = square.double().sqrt().float()  # PyTorch's of f32 may be off by an ulp
    new = p - (p * decay + mean * size / (root * root_factor + eps))
    finite = mean.isfinite() & square.isfinite()
    new, mean, square = new.where(finite, p), mean.where(finite, real(0)), square.where(finite, real(0))
    codes, absmax = [], []
    for above, x in zip(ABOVE, (mean, square)):
        most = x.abs().amax(dim=1)
        x = torch.where(most[:, None] > 0, x / most[:, None], real(0))
        codes.append(torch.searchsorted(real(above), x.contiguous()).to(torch.uint8).reshape(-1)[:count].reshape(parameter.shape))
        absmax.append(most)
    new = new.reshape(-1)[:count].reshape(parameter.shape)
    return new.to(parameter.dtype), *codes, None if master is None else new, *absmax, steps + 1
# [/adamw_8bit_torch]


# [adamw_8bit_traps]
@trap("one largest value for the whole tensor: where it is an outlier, the other means are rounded to 0")
def adamw_8bit_numpy_one_scale(parameter, gradient, m, v, m_absmax, v_absmax, steps=None, lr=1e-3, weight_decay=0.01):
    p, m, v, _, m_most, v_most, t = adamw_8bit_numpy(parameter, gradient, m, v, m_absmax, v_absmax, None, steps, None, None, lr,
                                                     weight_decay=weight_decay)
    whole = np.full_like(m_most, m_most.max(initial=0))
    return p, m, v, None, whole, v_most, t


@trap("the codes are written with the old largest values: a mean that grew is cut off")
def adamw_8bit_numpy_old_scale(parameter, gradient, m, v, m_absmax, v_absmax, steps=None, lr=1e-3, weight_decay=0.01):
    p, m, v, _, _, _, t = adamw_8bit_numpy(parameter, gradient, m, v, m_absmax, v_absmax, None, steps, None, None, lr,
                                           weight_decay=weight_decay)
    return p, m, v, None, m_absmax, v_absmax, t


@trap("a NaN of one gradient stays in its block's largest value, and then all 256 means are lost")
def adamw_8bit_numpy_nan_spreads(parameter, gradient, m, v, m_absmax, v_absmax, steps=None, lr=1e-3, weight_decay=0.01):
    p, m, v, _, m_most, v_most, t = adamw_8bit_numpy(parameter, gradient, m, v, m_absmax, v_absmax, None, steps, None, None, lr,
                                                     weight_decay=weight_decay)
    lost = ~np.isfinite(blocks(gradient, 0, np.float32)).all(axis=1)
    return p, m, v, None, np.where(lost, np.float32(np.nan), m_most), np.where(lost, np.float32(np.nan), v_most), t
# [/adamw_8bit_traps]


# [adamw_8bit_triton]
@triton.jit
def adamw_8bit_kernel(parameter, gradient, m, v, m_absmax, v_absmax, maps, above, new_parameter, new_m, new_v, new_m_absmax,
                      new_v_absmax, count, decay, size, root_factor, eps, beta1, beta2, share1, share2):
    """One program, one block of 256. A code is how many thresholds its number exceeds."""
    block = tl.program_id(0).to(tl.int64)
    at = block * 256 + tl.arange(0, 256)
    mask = at < count
    p, g = tl.load(parameter + at, mask=mask, other=0.0).to(tl.float32), tl.load(gradient + at, mask=mask, other=0.0).to(tl.float32)
    mean = tl.load(maps + tl.load(m + at, mask=mask, other=127).to(tl.int32)) * tl.load(m_absmax + block)
    square = tl.load(maps + 256 + tl.load(v + at, mask=mask, other=0).to(tl.int32)) * tl.load(v_absmax + block)
    mean = tl.where(share1 < 0.5, mean + (g - mean) * share1, g + (mean - g) * beta1)
    square = tl.where(share2 < 0.5, square + (g * g - square) * share2, g * g + (square - g * g) * beta2)
    new = p - (p * decay + tl.div_rn(mean * size, tl.sqrt_rn(square) * root_factor + eps))
    finite = (mean - mean) + (square - square) == 0
    new, mean, square = tl.where(finite, new, p), tl.where(finite, mean, 0.0), tl.where(finite, square, 0.0)
    m_most, v_most = tl.max(tl.abs(mean)), tl.max(square)
    tl.store(new_parameter + at, new.to(new_parameter.dtype.element_ty), mask=mask)
    tl.store(new_m_absmax + block, m_most)
    tl.store(new_v_absmax + block, v_most)
    x, y = tl.where(m_most > 0, tl.div_rn(mean, m_most), 0.0), tl.where(v_most > 0, tl.div_rn(square, v_most), 0.0)
    t = tl.arange(0, 256)
    m_code = tl.sum((x[:, None] > tl.load(above + t)[None, :]).to(tl.int32), axis=1)
    v_code = tl.sum((y[:, None] > tl.load(above + 256 + t)[None, :]).to(tl.int32), axis=1)
    tl.store(new_m + at, m_code.to(tl.uint8), mask=mask)
    tl.store(new_v + at, v_code.to(tl.uint8), mask=mask)


def adamw_8bit_triton(parameter, gradient, m, v, m_absmax, v_absmax, steps, lr=1e-3, beta1=0.9, beta2=0.999, eps=1e-8, weight_decay=0.01):
    made = [torch.empty_like(a) for a in (parameter, m, v, m_absmax, v_absmax)]
    maps = torch.tensor(MAPS[0] + MAPS[1], device=parameter.device)
    above = torch.tensor(ABOVE[0] + [2.0] + ABOVE[1] + [2.0], device=parameter.device)
    if parameter.numel() > 0:
        adamw_8bit_kernel[(triton.cdiv(parameter.numel(), 256),)](
            parameter, gradient, m, v, m_absmax, v_absmax, maps, above, *made, parameter.numel(),
            *of_step(int(steps) + 1, lr, beta1, beta2, eps, weight_decay), beta1, beta2, 1 - beta1, 1 - beta2, enable_fp_fusion=False)
    p, m, v, m_absmax, v_absmax = made
    return p, m, v, None, m_absmax, v_absmax, steps + 1
# [/adamw_8bit_triton]
